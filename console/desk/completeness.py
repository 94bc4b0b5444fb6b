"""Proof that a page shows all of a document: every value stands in the page, at its place, with its exact text."""

from __future__ import annotations

from html.parser import HTMLParser

from console.desk.node import Node

_VOID = frozenset({"br", "hr", "img", "input", "link", "meta", "wbr"})


def not_shown(document: Node, page: str) -> list[str]:
    """The places of the document (JSON pointers) that `page` does not show, or shows otherwise than they are."""
    shown = _Shown()
    shown.feed(page)
    shown.close()
    return [leaf.at or "" for _, leaf in document.leaves() if shown.texts.get(leaf.at or "") != leaf.text]


class _Shown(HTMLParser):
    """Collects the text of every element that says by `data-at` which value it shows."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.texts: dict[str, str] = {}
        self._open: list[str | None] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _VOID:
            return
        at = dict(attrs).get("data-at")
        self._open.append(at)
        if at is not None:
            self.texts[at] = ""

    def handle_endtag(self, tag: str) -> None:
        if tag not in _VOID and self._open:
            self._open.pop()

    def handle_data(self, data: str) -> None:
        for at in self._open:
            if at is not None:
                self.texts[at] += data
