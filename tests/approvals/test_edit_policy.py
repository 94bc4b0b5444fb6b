"""Pure decisions about edits and escalated approvals."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.approval import still_satisfied
from policies.edits import Change, edited
from policies.proposals import Evidence, Proposal
from policies.proposals import propose as action
from policies.risk import Assessment, Facts, assess
from policies.rules import Demand, Escalation
from policies.sealing import Sealed
from policies.tiers import Tier
from tests.policies.samples import NOW, Notify, Reserve, codes, judged, policy, refund, sealed, try_seal


def proposal_of(made: object) -> Proposal:
    """The edited proposal, which nothing refused."""
    assert isinstance(made, Proposal), made
    return made


STANDING = sealed(
    action(Notify, text="done"), refund(confidence=0.875), action(Reserve, sku="S1"), action(Reserve, sku="S2")
)


@given(st.sampled_from([0.0, 1.0, 0.1, 1e-05, 1 / 3]), st.text(max_size=20).filter(str.isprintable))
def test_an_edit_of_nothing_seals_to_the_same_actions(confidence: float, note: str) -> None:
    """What is not changed keeps its place, id, parameters, evidence, rationale and confidence to the last digit."""
    standing = sealed(refund(confidence=confidence, note=note), action(Reserve, sku="S1"))
    again = try_seal(*proposal_of(edited(standing, [])).actions)
    assert isinstance(again, Sealed)
    assert again.canonical == standing.canonical


def test_one_parameter_of_one_action_changes() -> None:
    """The others stay as they are, in their order."""
    made = sealed(*proposal_of(edited(STANDING, [Change("2:stock.reserve", "pieces", "3")])).actions)
    assert [one.action_id for one in made.actions] == [one.action_id for one in STANDING.actions]
    changed = [
        new.action_id for new, old in zip(made.actions, STANDING.actions, strict=True) if new.values != old.values
    ]
    assert changed == ["2:stock.reserve"]
    assert made.actions[1].values["pieces"] == 3


@pytest.mark.parametrize(
    ("parameter", "text", "value"),
    [
        ("amount", "40.00 EUR", {"minor": 4000, "currency": "EUR"}),
        ("amount", '{"minor": 4000, "currency": "EUR"}', {"minor": 4000, "currency": "EUR"}),
        ("note", "40", "40"),
        ("note", "null", "null"),
        ("note", '"quoted"', '"quoted"'),
        ("bought_on", "2026-03-02", "2026-03-02"),
        ("bought_on", "null", None),
    ],
)
def test_a_value_is_text_where_text_is_taken_and_json_elsewhere(parameter: str, text: str, value: object) -> None:
    """A person writes what they mean; the schema says which it is."""
    made = sealed(*proposal_of(edited(sealed(refund()), [Change("order.refund", parameter, text)])).actions)
    assert made.actions[0].values[parameter] == value


def test_quotes_take_the_place_of_those_for_the_old_value() -> None:
    """And only of those; without new ones the old evidence stays, and validation holds it against the new value."""
    order = Evidence("order_id", "order_id", "A-17")
    standing = sealed(refund(evidence=(Evidence("amount", "message", "TOTAL 48.20 EUR"), order)))
    change = Change("order.refund", "amount", "1.00 EUR")
    [kept] = proposal_of(edited(standing, [change])).actions
    assert kept.evidence == standing.actions[0].evidence
    assert "authority_unsupported" in codes(judged(sealed(kept)).findings)
    quoted = Change("order.refund", "amount", "1.00 EUR", (("message", "1.00 EUR"),))
    [replaced] = proposal_of(edited(standing, [quoted])).actions
    assert replaced.evidence == (order, Evidence("amount", "message", "1.00 EUR"))


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (Change("stock.reserve", "pieces", "3"), "unknown_action"),  # two have this type
        (Change("stock.release", "sku", "S1"), "unknown_action"),
        (Change("9:order.refund", "note", "x"), "unknown_action"),
        (Change("order.refund", "iban", "x"), "parameter_unknown"),
    ],
)
def test_a_change_of_what_is_not_there_is_a_finding(change: Change, code: str) -> None:
    """Never a guess."""
    made = edited(STANDING, [change])
    assert isinstance(made, tuple)
    assert codes(made) == [code]


def test_what_a_reviewer_edited_is_never_automatic() -> None:
    """The lowest review above decides, or nobody where there is none."""
    proposal = sealed(refund())
    found = assess(proposal, judged(proposal), Facts(NOW, edited=True), policy())
    assert (found.tier, found.decision, found.demand is not None) == (Tier.LOW, "review", True)
    assert [one.code for one in found.reasons] == ["edited"]
    strict = policy(decisions={"low": "auto", "medium": "refuse", "high": "refuse", "critical": "refuse"})
    assert assess(proposal, judged(proposal), Facts(NOW, edited=True), strict).decision == "refuse"


def asked(*steps: tuple[int, str], roles: tuple[str, ...] = ("lead",)) -> Demand:
    """A demand with escalations, each after so many hours."""
    escalate = tuple(Escalation(after=timedelta(hours=after), roles=(role,)) for after, role in steps)
    return Demand(roles=roles, people=1, expires_after=timedelta(days=2), escalate=escalate)


@pytest.mark.parametrize(
    ("approved", "now", "expected"),
    [
        (asked((2, "board")), asked((2, "board")), True),
        (asked((2, "board")), asked((1, "board")), True),
        (asked((2, "board")), asked((2, "board"), (4, "owner")), True),
        (asked((2, "board")), asked(roles=("lead", "board")), True),
        (asked(), asked((2, "board")), True),
        (asked((2, "board")), asked((3, "board")), False),
        (asked((2, "board")), asked((2, "owner")), False),
        (asked((2, "board")), asked(), False),
    ],
)
def test_whoever_an_escalation_let_in_must_still_be_let_in(approved: Demand, now: Demand, expected: bool) -> None:
    """A policy that took it away, or lets them in later, asks anew: one of them may have released it."""
    assert still_satisfied(approved, Assessment(Tier.MEDIUM, "review", (), now, "2", "live")) is expected
