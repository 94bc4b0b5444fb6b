"""A form of parameters: typed, complete, and no change where nothing was touched."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.desk.controls import control_for, written
from console.desk.forms import Form
from console.desk.node import Node
from console.desk.parameters import Entry, changes_of, entered, parameters_of, source_names, unchanged
from console.desk.rendering import render
from policies.actions import Authority
from policies.edits import Change
from policies.errors import NotPossibleNow, RequestRefused
from policies.money import Money
from policies.redaction import visible
from resources.store.inbox import Asked
from resources.store.sessions import SignedIn
from tests.console.test_review import document
from tests.desk.sent import sent
from tests.store.workflow import refunds

LEAD = SignedIn("fss_x", UUID(int=1), "human", "lead", ["support_lead"], datetime(2026, 1, 1, tzinfo=UTC))


class Size(Enum):
    SMALL = "small"
    LARGE = "large"


@pytest.mark.parametrize(
    ("annotation", "value", "kind", "blank"),
    [
        (str, "A1", "line", None),
        (str, "two\nlines", "lines", None),
        (str, "x" * 81, "lines", None),
        (str | None, None, "line", None),
        (Annotated[str, Authority()], "A1", "line", None),
        (Money, {"minor": 6000, "currency": "EUR"}, "line", None),
        (Money | None, None, "line", "null"),
        (date, "2026-03-02", "date", None),
        (date | None, None, "date", "null"),
        (int, 3, "line", None),
        (Decimal, "1.5", "line", None),
        (bool, True, "choice", None),
        (Literal["a", "b"], "a", "choice", None),
        (Size, "small", "choice", None),
        (Size | None, None, "choice", "null"),
        (list[str], ["a"], "lines", None),
        (datetime, "2026-03-02T00:00:00Z", "line", None),
        (int | str, 3, "lines", None),
        (None, "of another version", "line", None),
    ],
)
def test_a_control_fits_the_type(annotation: Any, value: Any, kind: str, blank: str | None) -> None:
    """And always offers what is asked now."""
    control = control_for(annotation, value)
    assert (control.kind, control.blank) == (kind, blank)
    if kind == "choice":
        assert written(value) in control.options


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"minor": 6000, "currency": "EUR"}, "60.00 EUR"),
        ({"minor": 6000, "currency": "eur"}, '{"minor": 6000, "currency": "eur"}'),
        (None, ""),
        (True, "true"),
        (["é"], '["é"]'),
        ("3", "3"),
    ],
)
def test_a_value_is_written_as_people_write_it(value: Any, text: str) -> None:
    """What the store reads again as the same."""
    assert written(value) == text


def form_of(content: dict[str, Any]) -> tuple[list[Entry], Form]:
    """The untouched form of a document's parameters, and what a browser sends for it."""
    stored = json.dumps(content).encode()
    parameters = parameters_of(stored, refunds)
    now = datetime.now(UTC)
    asked = Asked(
        UUID(int=1),
        UUID(int=2),
        "refunds",
        "o",
        "low",
        [],
        0,
        1,
        now,
        now,
        "open",
        b"",
        b"",
        stored,
        "awaiting_approval",
    )
    page = render(
        "edit.html",
        person=LEAD,
        csrf="",
        asked=asked,
        actions=[("1:order.refund", unchanged(parameters))],
        sources=source_names(stored, refunds),
        content=Node(content),
        reason="",
        problems=[],
        wrong=0,
    )
    fields = sent(page, f"/approvals/{UUID(int=1)}/edit")
    flat = [(name, one) for name, value in fields.items() for one in ([value] if isinstance(value, str) else value)]
    form = Form([(name, one.replace("\r\n", "\n")) for name, one in flat])
    return entered(parameters, form), form


TEXTS = st.text() | st.sampled_from(["\n\nx", "</textarea>", " a ", "\ta", "&amp;", '"', "a\r\nb", "\u202e"])


@given(order=TEXTS, quote=TEXTS.filter(bool), source=TEXTS)
def test_what_is_not_touched_is_no_change(order: str, quote: str, source: str) -> None:
    """Whatever the texts: they come back from the browser as they are asked."""
    content = json.loads(document())
    action = content["actions"][0]
    action["parameters"]["order_id"] = visible(order)
    action["evidence"][0] = {"parameter": "order_id", "source": visible(source), "quote": visible(quote)}
    entries, _ = form_of(content)
    assert changes_of(entries) == []


def test_changes_are_of_what_was_touched() -> None:
    """A value, its quotes, or both; an emptied quote is left out."""
    entries, form = form_of(json.loads(document()))
    parameters = [one.parameter for one in entries]

    def changed(**fields: str | list[str]) -> list[Change]:
        kept = [(name, value) for name, value in form.fields if name not in fields]
        new = [(name, one) for name, value in fields.items() for one in ([value] if isinstance(value, str) else value)]
        return changes_of(entered(parameters, Form(kept + new)))

    action = "1:order.refund"
    assert changed(**{"value.1.amount": "1.00 EUR"}) == [Change(action, "amount", "1.00 EUR")]
    assert changed(**{"quote.1.amount": ["60.00", "EUR"]}) == [
        Change(action, "amount", "60.00 EUR", (("amount", "60.00"), ("order_id", "EUR")))
    ]
    both: dict[str, str | list[str]] = {"value.1.amount": "1.00 EUR", "quote.1.amount": ["", ""]}
    assert changed(**both) == [Change(action, "amount", "1.00 EUR")]
    wrong: list[list[str]] = [[], ["a", "b"]]
    for values in wrong:
        with pytest.raises(RequestRefused):
            changed(**{"value.1.amount": values})


def test_an_action_that_is_no_more_is_not_edited() -> None:
    """The desk's workflow is of another version."""
    content = json.loads(document())
    content["actions"][0]["type"] = "order.gone"
    with pytest.raises(NotPossibleNow):
        parameters_of(json.dumps(content).encode(), refunds)
