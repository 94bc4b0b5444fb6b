"""The desk in a real browser: signing in, and looking at a page in every look that people use."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from playwright.sync_api import Page

from tests.store.requests import Person

CHROMIUM = shutil.which("chromium")
NEEDS_CHROMIUM = pytest.mark.skipif(CHROMIUM is None, reason="needs Debian's chromium: apt-get install chromium")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
SCREENSHOTS = Path(__file__).resolve().parent.parent.parent / ".failsafe" / "screenshots"
LOOKS = {"light": ("light", 1280), "dark": ("dark", 1280), "narrow": ("light", 360), "narrow-dark": ("dark", 360)}

FAINT = """() => {
  const parse = text => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(v => v / 255)
    .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = node => {
    for (let at = node; at; at = at.parentElement) {
      const colour = parse(getComputedStyle(at).backgroundColor);
      if (colour.length === 3 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  const contrast = (one, other) => {
    const [a, b] = [light(one), light(other)].sort((x, y) => y - x);
    return (a + 0.05) / (b + 0.05);
  };
  const faint = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const node = walk.currentNode.parentElement;
    if (!walk.currentNode.textContent.trim() || !node.getClientRects().length) continue;
    if (contrast(parse(getComputedStyle(node).color), ground(node)) < 4.5)
      faint.push(walk.currentNode.textContent.trim().slice(0, 40));
  }
  for (const node of document.querySelectorAll("input, select, textarea, button")) {
    if (!node.getClientRects().length || ["checkbox", "radio"].includes(node.type)) continue;
    const style = getComputedStyle(node);
    if (contrast(parse(style.color), ground(node)) < 4.5) faint.push("value of " + node.name);
    if (node.placeholder && contrast(parse(getComputedStyle(node, "::placeholder").color), ground(node)) < 4.5)
      faint.push("placeholder of " + node.name);
    if (contrast(parse(style.borderTopColor), ground(node.parentElement)) < 3) faint.push("border of " + node.name);
  }
  return faint;
}"""
"""Texts, values and placeholders whose contrast with what they stand on is under WCAG AA's 4.5 to 1, and controls whose
border is under the 3 to 1 that it asks of what one must find."""

UNCLEAR = """() => {
  const found = [];
  for (const node of document.querySelectorAll("input, select, textarea, button, a, summary")) {
    if (node.type === "hidden" || !node.getClientRects().length) continue;
    const labels = [...(node.labels || [])].map(one => one.textContent).join("");
    const named = ["BUTTON", "A", "SUMMARY"].includes(node.tagName) ? node.textContent : labels;
    if (!(named + (node.getAttribute("aria-label") || "")).trim()) found.push("no name: " + node.outerHTML);
    const box = node.getBoundingClientRect();
    if (!["A", "SUMMARY"].includes(node.tagName) && Math.min(box.width, box.height) < 24)
      found.push("too small to hit: " + node.outerHTML);
    for (const id of (node.getAttribute("aria-describedby") || "").split(" ").filter(Boolean))
      if (!document.getElementById(id)) found.push("described by nothing: " + node.outerHTML);
  }
  const ids = [...document.querySelectorAll("[id]")].map(one => one.id);
  found.push(...ids.filter((id, at) => ids.indexOf(id) !== at).map(id => "twice: " + id));
  if (document.querySelectorAll("h1").length !== 1) found.push("not one main heading");
  if (document.querySelector("script")) found.push("a script");
  return found;
}"""
"""Controls without a name or smaller than WCAG's 24 pixels, ids that stand twice, and scripts."""


def sign_in(page: Page, person: Person) -> None:
    """Sign in as somebody would."""
    page.goto("/")
    page.get_by_label("Your token").fill(person.token)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("**/inbox")


def looked_at(page: Page, name: str) -> None:
    """Keep the page as a picture in each look; it is legible and operable in every one, and never scrolls sideways."""
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    for look, (scheme, width) in LOOKS.items():
        page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        page.set_viewport_size({"width": width, "height": 900})
        page.screenshot(path=SCREENSHOTS / f"{name}-{look}.png", full_page=True)
        wrong = page.evaluate(FAINT) + page.evaluate(UNCLEAR)
        assert not wrong, (name, look, wrong)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, (name, look)
    page.emulate_media(color_scheme="light")
    page.set_viewport_size({"width": 1280, "height": 900})
