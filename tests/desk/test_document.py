"""A page proves that it shows all of a document; what it cannot prove, nobody approves there."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.desk import rendering
from console.desk.completeness import not_shown
from console.desk.document import shown_document, substance
from console.desk.evidence import highlighted
from console.desk.node import Node
from policies.money import Money
from policies.redaction import visible
from tests.console.test_review import document

HOSTILE = (
    "</bdi></pre><script>x()</script><!-- \"'><img src=x onerror=y()> &lt;b&gt; &amp; {{ 7 * 7 }}\n\u202e\u200b\x1b[0m"
)


class Tags(HTMLParser):
    """The names of the elements and attributes of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found |= {tag, *(name for name, _ in attrs)}


def with_text(text: str) -> bytes:
    """A document with this text in every place that others write."""

    def replaced(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: replaced(item) for name, item in value.items()}
        if isinstance(value, list):
            return [replaced(item) for item in value]
        return text if isinstance(value, str) else value

    content = json.loads(document())
    content["findings"] = [{"code": "c", "severity": "warn", "parameter": "p", "message": "m"}]
    return json.dumps(replaced(content)).encode()


def test_every_value_stands_in_the_page() -> None:
    """The document that a run builds is shown whole; so is one with findings and keys of a later version anywhere."""
    content = json.loads(document())
    content["findings"] = [
        {"code": "c", "severity": "warn", "parameter": "", "message": "m", "new": [1, {"deep": None}]}
    ]
    content["new"] = {"a/b~c": ["x", True]}
    for place in (
        content["actions"][0],
        content["actions"][0]["evidence"][0],
        content["reasons"][0],
        content["sources"][0],
    ):
        place["new"] = {"of": "a later version"}
    for one in (document(), json.dumps(content).encode()):
        assert shown_document(one).complete


@pytest.mark.parametrize(
    "dropped",
    ['{{ leaf(action["action_id"]) }}', '{{ fact(action["adapter"], "carried out by") }}', "{{ piece.text }}"],
)
def test_a_template_that_drops_something_offers_no_approval(dropped: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The proof looks at the page itself, so a mistake in the template is found when it is shown."""
    environment = rendering._environment()  # noqa: SLF001
    assert environment.loader
    source = environment.loader.get_source(environment, "document.html")[0]
    assert dropped in source
    maimed = environment.from_string(source.replace(dropped, ""))
    real = rendering.render
    monkeypatch.setattr(
        "console.desk.document.render",
        lambda name, **values: maimed.render(values) if name == "document.html" else real(name, **values),
    )
    result = shown_document(document())
    assert not result.complete
    assert "This page cannot show all of it" in result.html


@pytest.mark.parametrize(
    "stored",
    [
        b"",
        b"[]",
        b"null",
        b'{"a": 1, "a": 2}',
        b"\xff",
        b'{"actions": "none"}',
        b'{"reasons": [["x"]]}',
        b'{"sources": {"a": 1}}',
    ],
)
def test_what_cannot_be_shown_is_shown_as_stored(stored: bytes) -> None:
    """Whatever lies in the table, there is a page, and either all of it is there or it says that it is not."""
    result = shown_document(stored)
    if not result.complete:
        assert "This page cannot show all of it" in result.html
    else:
        assert not_shown(Node(json.loads(stored)), result.html) == []


@given(st.text() | st.sampled_from([HOSTILE]))
def test_untrusted_text_is_only_ever_text(text: str) -> None:
    """In every place: it adds no element and no attribute, hides nothing, and is there to the character."""
    result = shown_document(with_text(text))
    assert result.complete
    assert Tags(result.html).found <= Tags(shown_document(with_text("x")).html).found | {
        "id",
        "a",
        "href",
        "mark",
        "class",
    }
    assert visible(result.html) == result.html


def test_hostile_text_is_escaped() -> None:
    """The attacks one knows, as one would see them."""
    page = shown_document(with_text(HOSTILE)).html
    assert "<script" not in page
    assert "<img" not in page
    assert "49" not in page.replace("{{ 7 * 7 }}", "")
    assert "\\u202e\\u200b\\u001b[0m" in page


def test_sources_that_are_not_known_to_be_trusted_are_marked() -> None:
    """An unknown trust counts as none; a quote carries the trust of its source."""
    content = json.loads(document())
    content["sources"][0]["trust"] = "a new kind"
    page = shown_document(json.dumps(content).encode()).html
    assert page.count('class="source untrusted"') == 2
    assert page.count('<blockquote class="untrusted">') == 1


@given(st.text("ab\n"), st.lists(st.text("ab\n", max_size=3)))
def test_highlighting_loses_nothing(source: str, quotes: list[str]) -> None:
    """The pieces joined are the source; each quote that stands in it is marked and begins at one place."""
    pieces = highlighted(source, quotes)
    assert "".join(piece.text for piece in pieces) == source
    standing = {quote for quote in quotes if quote and quote in source}
    assert {quote for piece in pieces for quote in piece.quotes} == standing
    assert sorted(quote for piece in pieces for quote in piece.begins) == sorted(standing)


def test_every_quote_leads_to_its_place() -> None:
    """The same quote of several actions leads to one place; a place is named once on the page."""
    content = json.loads(document())
    action = content["actions"][0]
    action["evidence"].append({"parameter": "amount", "source": "amount", "quote": "60"})
    content["actions"].append({**action, "action_id": "2:order.refund"})
    page = shown_document(json.dumps(content).encode(), "x-").html
    links = re.findall(r'href="#(x-quote-\d+)"', page)
    assert len(links) == 6
    for place in set(links):
        assert page.count(f'id="{place}"') == 1
    assert "not among the sources" not in page


def test_the_substance_of_a_document() -> None:
    """Types of actions and every amount they move, wherever it is nested; nothing where it cannot be read."""
    content = json.loads(document())
    content["actions"][0]["parameters"]["fees"] = [{"fee": {"minor": 250, "currency": "EUR"}}]
    found = substance(json.dumps(content).encode())
    assert found
    assert found.action_types == ("order.refund",)
    assert set(found.amounts) == {Money.parse("60.00 EUR"), Money.parse("2.50 EUR")}
    assert substance(b"{") is None
    assert substance(b"{}") is None
