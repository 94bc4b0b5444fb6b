"""Reading a model's output without trusting it."""

from __future__ import annotations

import json
import math
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.findings import MAX_FINDINGS, Severity
from policies.money import Money
from policies.proposals import (
    MAX_OUTPUT,
    Abstention,
    Evidence,
    Proposal,
    ProposedAction,
    output_bytes,
    propose,
    read_output,
)
from tests.policies.samples import Refund, codes

ANY_TEXT = st.text(st.characters())
JSON_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY_TEXT, inner, max_size=3),
    max_leaves=8,
)
PROPOSALS = st.builds(
    Proposal,
    st.lists(
        st.builds(
            ProposedAction,
            ANY_TEXT,
            st.dictionaries(ANY_TEXT, JSON_VALUES, max_size=3),
            st.lists(st.builds(Evidence, ANY_TEXT, ANY_TEXT, ANY_TEXT), max_size=2).map(tuple),
            ANY_TEXT,
            st.none() | st.floats(0, 1),
        ),
        min_size=1,
        max_size=3,
    ).map(tuple),
)


@given(PROPOSALS)
def test_a_proposal_is_kept_and_read_back(proposal: Proposal) -> None:
    """NUL, lone surrogates and every finite number survive storage as ASCII."""
    data = output_bytes(proposal)
    assert data.isascii()
    assert b"\0" not in data
    if len(data) <= MAX_OUTPUT:
        assert read_output(data) == proposal


def test_an_abstention_is_kept_and_read_back() -> None:
    """The reason comes back as it was."""
    assert read_output(output_bytes(Abstention("the total is torn off \0\ud800"))) == Abstention(
        "the total is torn off \0\ud800"
    )


def test_propose_writes_typed_values_as_json() -> None:
    """Money, dates and decimals become what a model would have sent."""
    action = propose(Refund, amount=Money(minor=4820, currency="EUR"), bought_on=date(2026, 3, 1), rate=Decimal("0.10"))
    assert action.type == "order.refund"
    assert action.parameters == {
        "amount": {"minor": 4820, "currency": "EUR"},
        "bought_on": "2026-03-01",
        "rate": "0.10",
    }


@pytest.mark.parametrize(
    "output", [None, 7, "a story", object(), {"a": object()}, {1, 2}, math.nan, Exception("x"), b"\xff"]
)
def test_anything_an_extractor_returns_is_kept(output: object) -> None:
    """What is neither proposal nor abstention is kept and read back as findings."""
    result = read_output(output_bytes(output))
    assert isinstance(result, tuple)
    assert codes(result)


def test_an_output_that_contains_itself_is_kept() -> None:
    """A structure without an end becomes a finding, not an endless loop."""
    endless: dict[str, Any] = {}
    endless["actions"] = endless
    assert isinstance(read_output(output_bytes(endless)), tuple)


def action(**changes: Any) -> dict[str, Any]:
    """An action document; a change of ... leaves the key out."""
    document = {"type": "order.refund", "parameters": {}} | changes
    return {name: value for name, value in document.items() if value is not ...}


EVIDENCE = {"parameter": "amount", "source": "message", "quote": "48.20"}


@pytest.mark.parametrize(
    ("document", "code", "path"),
    [
        ([], "not_a_proposal", ""),
        ("Sure! I will refund them.", "not_a_proposal", ""),
        (None, "not_a_proposal", ""),
        ({}, "missing_field", "actions"),
        ({"actions": []}, "no_actions", "actions"),
        ({"actions": {}}, "wrong_type", "actions"),
        ({"actions": [], "thoughts": ""}, "extra_field", "thoughts"),
        ({"abstention": ""}, "wrong_type", "abstention"),
        ({"abstention": " "}, "wrong_type", "abstention"),
        ({"abstention": None}, "wrong_type", "abstention"),
        ({"abstention": "no", "actions": [action()]}, "extra_field", "abstention"),
        ({"actions": ["refund"]}, "wrong_type", "actions[0]"),
        ({"actions": [action(type=...)]}, "missing_field", "actions[0].type"),
        ({"actions": [action(type=["order.refund"])]}, "wrong_type", "actions[0].type"),
        ({"actions": [action(parameters=...)]}, "missing_field", "actions[0].parameters"),
        ({"actions": [action(parameters=["A-17"])]}, "wrong_type", "actions[0].parameters"),
        ({"actions": [action(arguments={})]}, "extra_field", "actions[0].arguments"),
        ({"actions": [action(approved=True)]}, "extra_field", "actions[0].approved"),
        ({"actions": [action(rationale=None)]}, "wrong_type", "actions[0].rationale"),
        ({"actions": [action(evidence="48.20")]}, "wrong_type", "actions[0].evidence"),
        ({"actions": [action(evidence=[EVIDENCE | {"quote": 48.2}])]}, "wrong_type", "actions[0].evidence[0].quote"),
        ({"actions": [action(evidence=[EVIDENCE | {"page": 1}])]}, "extra_field", "actions[0].evidence[0].page"),
        ({"actions": [action(confidence=1.5)]}, "bad_value", "actions[0].confidence"),
        ({"actions": [action(confidence=-0.1)]}, "bad_value", "actions[0].confidence"),
        ({"actions": [action(confidence=True)]}, "bad_value", "actions[0].confidence"),
        ({"actions": [action(confidence="high")]}, "bad_value", "actions[0].confidence"),
        ({"actions": [action(), action(type=1)]}, "wrong_type", "actions[1].type"),
    ],
)
def test_a_wrong_shape_is_refused_by_name(document: Any, code: str, path: str) -> None:
    """Each departure from the shape is a refusing finding that says where it is."""
    result = read_output(json.dumps(document).encode())
    assert isinstance(result, tuple)
    assert (code, path) in [(finding.code, finding.parameter) for finding in result]
    assert {finding.severity for finding in result} == {Severity.REFUSE}


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b'{"actions": [{"type": "order.refund", "parameters": {"order_id": "A-1',
        b'```json\n{"actions": []}\n```',
        b'{"actions": [], "actions": []}',
        b'{"actions": [{"type": "a", "parameters": {"x": NaN}}]}',
        b'{"actions": [{"type": "a", "parameters": {"x": 1, "x": 2}}]}',
        b"\xff\xfe{\x00}\x00",
        b"[" * 200_000,
        b'{"actions":' * 20_000,
        b"9" * 10_000,
        b'{"abstention": "' + b"x" * MAX_OUTPUT + b'"}',
    ],
    ids=lambda data: repr(data[:20]),
)
def test_bytes_that_are_no_output_are_refused(data: bytes) -> None:
    """Cut off, wrapped in prose, ambiguous, too deep or too long: a finding, never an exception or a repair."""
    result = read_output(data)
    assert isinstance(result, tuple)
    assert codes(result) == ["not_a_proposal"]


@given(st.binary(max_size=200) | JSON_VALUES.map(lambda value: json.dumps(value).encode()))
def test_no_bytes_make_reading_raise(data: bytes) -> None:
    """Any bytes give a proposal, an abstention, or findings whose text can be stored."""
    result = read_output(data)
    if isinstance(result, tuple):
        assert result
        for finding in result:
            (finding.message + finding.parameter).encode()
            assert "\0" not in finding.message + finding.parameter


def test_findings_are_bounded() -> None:
    """An output made of mistakes does not become thousands of rows."""
    result = read_output(json.dumps({"actions": [{}] * 10_000}).encode())
    assert isinstance(result, tuple)
    assert len(result) == MAX_FINDINGS
