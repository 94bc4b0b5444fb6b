"""From proposal to sealed proposal, and back from stored bytes."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from datetime import date
from decimal import Decimal
from enum import Enum
from itertools import permutations
from typing import Annotated, Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st
from pydantic import AfterValidator

from policies.actions import MAX_TEXT, Action
from policies.catalogue import Catalogue, CatalogueEntry
from policies.findings import MAX_FINDINGS, Severity
from policies.hashing import PARAMETERS, PROPOSAL, canonical_bytes, domain_hash
from policies.money import MAX_EXACT_INTEGER, Money
from policies.outcomes import Semantics
from policies.proposals import Evidence, Proposal, ProposedAction, propose
from policies.records import Record
from policies.sealing import MAX_ACTIONS, MAX_DEPTH, MAX_EVIDENCE, Sealed, unseal
from tests.policies.samples import (
    AMOUNT_QUOTE,
    CATALOGUE,
    ORDER,
    RECORDS,
    Notify,
    Refund,
    Reserve,
    codes,
    refund,
    refused,
    sealed,
    try_seal,
)

NOTICE = propose(Notify, text="Paid.")
RESERVE = propose(Reserve, sku="S-1")


class Colour(Enum):
    """An enumeration as a parameter."""

    RED = "red"


def _always_fails(value: str) -> str:
    raise KeyError(value)


class Typed(Action, name="typed.one", reversible=False):
    """One parameter of each type."""

    count: int
    share: float
    price: Decimal
    day: date
    money: Money
    colour: Colour
    names: list[str]
    extra: dict[str, Any] = {}  # noqa: RUF012 - pydantic copies defaults


class Broken(Action, name="broken.one", reversible=False):
    """Its validator has a bug."""

    text: Annotated[str, AfterValidator(_always_fails)]


TYPED = {
    "count": 3,
    "share": 0.5,
    "price": "1.10",
    "day": "2026-03-01",
    "money": "50.00 EUR",
    "colour": "red",
    "names": ["a"],
}
OTHERS = Catalogue(
    {
        kind.action_type.name: CatalogueEntry(kind.action_type, "Adapter", "host", Semantics())
        for kind in (Typed, Broken)
    }
)


def typed(**changes: Any) -> ProposedAction:
    """An action of every type, changed."""
    return ProposedAction("typed.one", TYPED | changes)


def test_the_canonical_document_says_everything() -> None:
    """Request, versions, sources, actions in order, evidence, adapters and targets are what the hash names."""
    proposal = sealed(refund(confidence=0.9))
    document = json.loads(proposal.canonical)
    action = document["actions"][0]
    assert {name: document[name] for name in ("request_id", "revision", "workflow", "workflow_version")} == {
        "request_id": "r-1",
        "revision": 1,
        "workflow": "refunds",
        "workflow_version": "1",
    }
    assert document["catalogue"] == CATALOGUE.hash
    assert document["sources"] == {"message": "ab" * 32}
    assert action == {
        "action_id": "1:order.refund",
        "type": "order.refund",
        "parameters": {
            "order_id": "A-17",
            "payee": "C-1",
            "amount": {"minor": 4820, "currency": "EUR"},
            "bought_on": None,
            "asked_on": None,
            "note": "",
        },
        "evidence": [{"parameter": "amount", "source": "message", "quote": "TOTAL 48.20 EUR"}],
        "rationale": "",
        "confidence": "0.9",
        "adapter": "RefundAdapter",
        "target": "https://provider",
    }
    assert proposal.canonical == rfc8785.dumps(document)
    assert proposal.hash == domain_hash(PROPOSAL, proposal.canonical)


def test_parameters_stand_verbatim_in_the_canonical_bytes() -> None:
    """The database can check a parameter hash against a part of the canonical bytes."""
    proposal = sealed(refund())
    action = proposal.actions[0]
    assert action.parameters in proposal.canonical
    assert action.parameters_hash == domain_hash(PARAMETERS, action.parameters)
    assert action.parameters == canonical_bytes(dict(action.values))


@pytest.mark.parametrize("order", list(permutations([refund(), NOTICE, RESERVE])))
def test_actions_run_in_catalogue_order(order: tuple[ProposedAction, ...]) -> None:
    """Whatever order the model proposed: reversible first, notifications last, and the hash is the same."""
    proposal = sealed(*order)
    assert [action.action_id for action in proposal.actions] == [
        "1:stock.reserve",
        "2:order.refund",
        "3:customer.notify",
    ]
    assert proposal.hash == sealed(refund(), NOTICE, RESERVE).hash


def test_actions_of_one_rank_keep_the_order_proposed() -> None:
    """Within a rank the model's order stands and is part of the hash."""
    one, other = propose(Notify, text="First."), propose(Notify, text="Second.")
    assert [action.values["text"] for action in sealed(one, other).actions] == ["First.", "Second."]
    assert sealed(one, other).hash != sealed(other, one).hash


@given(
    st.permutations(["order_id", "payee", "amount", "note"]),
    st.sampled_from(["48.20 EUR", {"minor": 4820, "currency": "EUR"}, {"currency": "EUR", "minor": 4820}]),
)
def test_the_writing_of_parameters_makes_no_difference(order: list[str], amount: Any) -> None:
    """Key order, both forms of money and a default that is spelt out give one hash."""
    values = {"order_id": "A-17", "payee": "C-1", "amount": amount, "note": ""}
    action = ProposedAction("order.refund", {name: values[name] for name in order}, (AMOUNT_QUOTE,))
    assert sealed(action).hash == sealed(refund()).hash


@pytest.mark.parametrize(
    "other",
    [
        refund(amount="48.21 EUR"),
        refund(amount="48.20 USD"),
        refund(note="\u00e9"),
        refund(note="e\u0301"),
        refund(evidence=()),
        refund(confidence=0.5),
        refund(payee="C-2"),
    ],
)
def test_any_change_changes_the_hash(other: ProposedAction) -> None:
    """A hash names one proposal: another value, quote, confidence or Unicode form is another proposal."""
    assert sealed(other).hash != sealed(refund()).hash


def test_a_changed_target_changes_the_hash() -> None:
    """The same action at another provider account is another proposal."""
    entry = replace(CATALOGUE.entries["order.refund"], target="https://elsewhere")
    moved = try_seal(refund(), catalogue=Catalogue({**CATALOGUE.entries, "order.refund": entry}))
    assert isinstance(moved, Sealed)
    assert moved.hash != sealed(refund()).hash


def test_what_the_model_left_out_comes_from_the_record() -> None:
    """An authority parameter backed by a record is filled with the record's value."""
    assert sealed(refund()).actions[0].values["payee"] == "C-1"


@pytest.mark.parametrize(
    "records",
    [{}, {("orders", "A-17"): None}, {("orders", "A-17"): Record("orders", "A-17", {})}, {("orders", "A-18"): ORDER}],
)
def test_what_no_record_fills_stays_missing(records: dict[tuple[str, str], Record | None]) -> None:
    """Without the record or its field the parameter is missing and the proposal refused."""
    assert codes(refused(refund(), records=records)) == ["missing_field"]


def test_a_key_is_never_filled() -> None:
    """The parameter that names the record must come from the model, since nothing else can tell which record."""
    assert codes(refused(refund(order_id=None))) == ["missing_field", "missing_field"]


def test_json_natural_values_are_accepted() -> None:
    """Dates, decimals, money and enumerations come as JSON and become typed values."""
    result = try_seal(typed(), catalogue=OTHERS)
    assert isinstance(result, Sealed)
    action = result.actions[0].action
    assert isinstance(action, Typed)
    assert (action.price, action.day, action.money, action.colour) == (
        Decimal("1.10"),
        date(2026, 3, 1),
        Money(minor=5000, currency="EUR"),
        Colour.RED,
    )
    assert result.actions[0].values["price"] == "1.10"


@pytest.mark.parametrize(
    ("changes", "code", "path"),
    [
        ({"count": "3"}, "wrong_type", ".count"),
        ({"count": 3.5}, "wrong_type", ".count"),
        ({"count": True}, "wrong_type", ".count"),
        ({"count": None}, "wrong_type", ".count"),
        ({"count": 2**53}, "not_canonical", ".count"),
        ({"count": 10**400}, "not_canonical", ".count"),
        ({"share": math.nan}, "not_canonical", ".share"),
        ({"share": -math.inf}, "not_canonical", ".share"),
        ({"share": 1e300}, "not_canonical", ".share"),
        ({"share": "0.5"}, "wrong_type", ".share"),
        ({"price": "NaN"}, "bad_value", ".price"),
        ({"price": "a lot"}, "bad_value", ".price"),
        ({"day": "01.03.2026"}, "bad_value", ".day"),
        ({"day": "2026-02-30"}, "bad_value", ".day"),
        ({"money": "50 euros"}, "bad_value", ".money"),
        ({"money": 50}, "wrong_type", ".money"),
        ({"money": {"minor": 1.5, "currency": "EUR"}}, "wrong_type", ".money.minor"),
        ({"money": {"minor": 1, "currency": "EUR", "cents": 1}}, "extra_field", ".money.cents"),
        ({"colour": "blue"}, "bad_value", ".colour"),
        ({"names": "a"}, "wrong_type", ".names"),
        ({"names": ["a", 1]}, "wrong_type", ".names[1]"),
        ({"names": ["x" * (MAX_TEXT + 1)]}, "text_too_long", ".names[0]"),
        ({"names": ["\ud800"]}, "forbidden_character", ".names[0]"),
        ({"names": ["a\0b"]}, "forbidden_character", ".names[0]"),
        ({"names": {"a"}}, "wrong_type", ".names"),
        ({"day": date(2026, 3, 1)}, "wrong_type", ".day"),
        ({"shipping": "fast"}, "extra_field", ".shipping"),
        ({"extra": {"\ud800": 1}}, "forbidden_character", ".extra"),
        ({"extra": {"a": {"b": math.nan}}}, "not_canonical", ".extra.a.b"),
    ],
)
def test_a_wrong_value_is_refused_by_name(changes: dict[str, Any], code: str, path: str) -> None:
    """Each wrong value is a refusing finding with its code and place, never a repair."""
    result = try_seal(typed(**changes), catalogue=OTHERS)
    assert isinstance(result, tuple)
    assert [(one.code, one.parameter, one.severity) for one in result] == [
        (code, f"actions[0].parameters{path}", Severity.REFUSE)
    ]


def test_nesting_is_bounded() -> None:
    """Parameters nested deeper than allowed are refused."""
    deep: Any = "end"
    for _ in range(MAX_DEPTH - 3):  # the parameters, the mapping and its list are levels as well
        deep = [deep]
    assert isinstance(try_seal(typed(extra={"a": [deep]}), catalogue=OTHERS), Sealed)
    result = try_seal(typed(extra={"a": [[deep]]}), catalogue=OTHERS)
    assert isinstance(result, tuple)
    assert codes(result) == ["not_canonical"]
    assert MAX_DEPTH == 8


def test_a_validator_with_a_bug_refuses_the_action() -> None:
    """A bug in the workflow's own validator, met by a model's value, becomes a finding."""
    result = try_seal(ProposedAction("broken.one", {"text": "x"}), catalogue=OTHERS)
    assert isinstance(result, tuple)
    assert codes(result) == ["bad_value"]
    assert "KeyError" in result[0].message


@pytest.mark.parametrize(
    ("actions", "code"),
    [
        ((), "no_actions"),
        ((ProposedAction("order.destroy", {}),), "unknown_action"),
        ((ProposedAction("", {}),), "unknown_action"),
        ((ProposedAction("stock.release", {"sku": "S-1"}),), "undo_proposed"),
        ((RESERVE, RESERVE), "duplicate_action"),
        ((RESERVE, propose(Reserve, sku="S-1", pieces=1)), "duplicate_action"),
        (tuple(propose(Reserve, sku=str(n)) for n in range(MAX_ACTIONS + 1)), "too_many_actions"),
        ((refund(evidence=[AMOUNT_QUOTE] * (MAX_EVIDENCE + 1)),), "too_much_evidence"),
        ((refund(evidence=[Evidence("amount", "message", "x" * (MAX_TEXT + 1))]),), "text_too_long"),
        ((refund(evidence=[Evidence("amount", "message\0", "x")]),), "forbidden_character"),
        ((refund(evidence=[Evidence("amount\ud800", "message", "x")]),), "forbidden_character"),
        ((ProposedAction("stock.reserve", {"sku": "S-1"}, rationale="\udfff"),), "forbidden_character"),
    ],
)
def test_what_cannot_be_sealed(actions: tuple[ProposedAction, ...], code: str) -> None:
    """Types outside the catalogue, compensations, repetitions and excess are refused."""
    assert codes(refused(*actions)) == [code]


def test_one_bad_action_refuses_the_whole_proposal() -> None:
    """Nothing is sealed in part, and every action's mistakes are reported."""
    found = refused(refund(), ProposedAction("a", {}), ProposedAction("b", {}))
    assert [finding.parameter for finding in found] == ["actions[1].type", "actions[2].type"]


def test_findings_are_bounded() -> None:
    """An action made of mistakes does not become thousands of rows."""
    assert len(refused(ProposedAction("stock.reserve", {str(n): n for n in range(5_000)}))) == MAX_FINDINGS


ANY_TEXT = st.text(st.characters(), max_size=20)
ANY_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT | st.binary(max_size=3) | st.dates(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY_TEXT | st.integers(), inner, max_size=3),
    max_leaves=6,
)


@given(
    st.lists(
        st.builds(
            ProposedAction,
            st.sampled_from([*CATALOGUE.entries, "other"]),
            st.dictionaries(
                st.sampled_from(["order_id", "payee", "amount", "sku", "text", "note"]) | ANY_TEXT,
                ANY_VALUES,
                max_size=4,
            ),
            st.lists(st.builds(Evidence, ANY_TEXT, ANY_TEXT, ANY_TEXT), max_size=2).map(tuple),
            ANY_TEXT,
            st.none() | st.floats(0, 1),
        ),
        max_size=3,
    ).map(tuple)
)
def test_no_proposal_makes_sealing_raise(actions: tuple[ProposedAction, ...]) -> None:
    """Any proposal is sealed or refused with findings; what is sealed reads back from its bytes."""
    result = try_seal(*actions)
    if isinstance(result, Sealed):
        assert unseal(result.canonical, CATALOGUE).hash == result.hash
    else:
        assert {finding.severity for finding in result} == {Severity.REFUSE}


def test_a_sealed_proposal_reads_back_from_its_bytes() -> None:
    """Stored bytes give the same actions with the same hashes."""
    proposal = sealed(refund(confidence=0.25), NOTICE, RESERVE)
    again = unseal(proposal.canonical, CATALOGUE)
    assert again == proposal


def test_floats_keep_their_bytes_when_read_back() -> None:
    """A whole float is written as an integer and has the same parameter hash afterwards."""
    result = try_seal(typed(share=2.0), catalogue=OTHERS)
    assert isinstance(result, Sealed)
    assert b'"share":2}' in result.canonical
    assert unseal(result.canonical, OTHERS).actions[0].parameters_hash == result.actions[0].parameters_hash


@pytest.mark.parametrize("changes", [{"count": MAX_EXACT_INTEGER}, {"names": ["x" * MAX_TEXT]}])
def test_the_limits_themselves_are_accepted(changes: dict[str, Any]) -> None:
    """The largest exact integer and the longest text pass."""
    assert isinstance(try_seal(typed(**changes), catalogue=OTHERS), Sealed)


def test_proposals_are_values() -> None:
    """The sample proposal seals to the same hash twice."""
    assert sealed(refund()).hash == sealed(refund()).hash
    assert Proposal((refund(),)) == Proposal((refund(),))
    assert RECORDS["orders", "A-17"] is ORDER
    assert Refund.action_type.authority.keys() == {"order_id", "payee", "amount"}
