"""The review document as a page shows it, and whether the page shows all of it."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from console.desk.completeness import not_shown
from console.desk.evidence import highlighted
from console.desk.node import Node
from console.desk.rendering import render
from policies.errors import CanonicalFormError
from policies.money import Money
from policies.redaction import visible
from policies.strict_json import read_json

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ShownDocument:
    """A document as HTML. `complete` is false where anything of it is missing there; then nobody may approve on it."""

    html: Markup
    complete: bool


def shown_document(document: bytes, prefix: str = "") -> ShownDocument:
    """Render a review document and hold what was rendered against it; `prefix` keeps two on one page apart."""
    try:
        content = Node(read_json(document))
        places = _places(content, prefix)
        sources = [_source(source, places) for source in content["sources"]]
        trusted = {one["node"]["name"].text for one in sources if not one["untrusted"]}
        html = render("document.html", doc=content, sources=sources, places=places, trusted=trusted, prefix=prefix)
        missing = not_shown(content, html)
    except Exception as error:  # noqa: BLE001 # whatever it is that cannot be shown, the answer is the same
        _LOG.warning("a review document cannot be shown: %s", type(error).__name__)
        missing = ["(all)"]
    if not missing:
        return ShownDocument(Markup(html), complete=True)  # noqa: S704 # made by a template that escapes
    raw = render("raw_document.html", text=visible(document.decode("utf-8", "backslashreplace")), missing=missing)
    return ShownDocument(Markup(raw), complete=False)  # noqa: S704


@dataclass(frozen=True, slots=True)
class Substance:
    """What a list says of a document: the types of its actions, and each amount they move, once."""

    action_types: tuple[str, ...]
    amounts: tuple[Money, ...]


def substance(document: bytes) -> Substance | None:
    """The substance of a document; None where it cannot be read."""
    try:
        actions = list(Node(read_json(document))["actions"])
    except CanonicalFormError:
        return None
    if not actions:
        return None
    return Substance(
        tuple(action["type"].text for action in actions),
        tuple(dict.fromkeys(Money.parse(money) for one in actions for money in _amounts(one["parameters"]))),
    )


def _amounts(node: Node) -> list[str]:
    if node.money is not None:
        return [node.money]
    children = list(node) or [child for _, child in node.rest()]
    return [money for child in children for money in _amounts(child)]


def _places(content: Node, prefix: str) -> dict[tuple[str, str], str]:
    """An anchor for each quote that stands in a source of the document, by the source's name and the quote."""
    values = {source["name"].text: source["value"].text for source in content["sources"] if source["value"].is_text}
    quotes = dict.fromkeys(
        (evidence["source"].text, evidence["quote"].text)
        for action in content["actions"]
        for evidence in action["evidence"]
        if evidence["quote"].value
    )
    standing = (one for one in quotes if one[1] in values.get(one[0], ""))
    return {one: f"{prefix}quote-{number}" for number, one in enumerate(standing, start=1)}


def _source(source: Node, places: Mapping[tuple[str, str], str]) -> dict[str, Any]:
    """A source, cut at its quotes where it is a text. What is not known to be trusted is shown as what it may be."""
    name, value = source["name"].text, source["value"]
    quotes = [quote for origin, quote in places if origin == name]
    return {
        "node": source,
        "segments": highlighted(value.text, quotes) if value.is_text else None,
        "untrusted": source["trust"].value not in {"principal", "record"},
    }
