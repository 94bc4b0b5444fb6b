"""Rules, tiers and decisions."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from policies.money import Money
from policies.proposals import Evidence, ProposedAction, propose
from policies.risk import Assessment, Facts, Reason, TypedRule, assess
from policies.rules import Demand
from policies.sealing import Sealed
from policies.tiers import Tier
from policies.validation import Validation
from tests.policies.samples import AMOUNT_QUOTE, NOW, Notify, Reserve, judged, policy, refund, sealed

NOTE = Evidence("note", "message", "Thanks")
AS_OF = {"field": "order.refund.bought_on", "as_of": "order.refund.asked_on", "older_than": "9d"}
CLAIMS = {"paid": ["order.refund.order_id"]}


def fires(rule: dict[str, Any], *actions: ProposedAction, facts: Facts | None = None, **changes: Any) -> bool:
    """Whether one rule fires on the proposal of these actions."""
    rules = policy(tiers=[{"tier": "high", "because": "it fired"} | rule], **changes)
    proposal = sealed(*actions)
    result = assess(proposal, judged(proposal, rules=rules), facts or Facts(NOW), rules)
    return result.reasons == (Reason(Tier.HIGH, "tiers[0]", "it fired"),)


@pytest.mark.parametrize(
    ("rule", "action", "expected"),
    [
        ({}, refund(), True),
        ({"action": "order.refund"}, refund(), True),
        ({"action": "order.refund"}, propose(Reserve, sku="S-1"), False),
        ({"over": "48.19 EUR"}, refund(), True),
        ({"over": "48.20 EUR"}, refund(), False),
        ({"over": "48.20 USD"}, refund(), True),
        ({"over": ["1.00 USD", "48.20 EUR"]}, refund(), False),
        ({"over": "0.01 EUR"}, propose(Notify, text="Hello."), False),
        ({"evidence": "untrusted"}, refund(), True),
        ({"evidence": "untrusted"}, propose(Reserve, sku="S-1"), False),
        ({"evidence": "unquoted"}, propose(Reserve, sku="S-1"), True),
        ({"evidence": "unquoted"}, refund(), False),
        ({"finding": "quote_unrelated"}, refund(note="x", evidence=[AMOUNT_QUOTE, NOTE]), True),
        ({"finding": "quote_unrelated"}, refund(), False),
        (
            {"finding": "quote_unrelated", "action": "order.refund"},
            refund(note="x", evidence=[AMOUNT_QUOTE, NOTE]),
            True,
        ),
        ({"sensitivity": "financial"}, refund(), True),
        ({"sensitivity": "financial"}, propose(Notify, text="Hello."), False),
        ({"recipient_scope": "external"}, refund(), True),
        ({"recipient_scope": "external"}, propose(Notify, text="Hello."), False),
        ({"reversible": True}, propose(Reserve, sku="S-1"), True),
        ({"reversible": True}, refund(), False),
        ({"reversible": False}, refund(), True),
        ({"confidence_below": 0.8}, refund(confidence=0.79), True),
        ({"confidence_below": 0.8}, refund(confidence=0.8), False),
        ({"confidence_below": 0.8}, refund(), True),
        ({"missing": "order.refund.bought_on"}, refund(), True),
        ({"missing": "order.refund.bought_on"}, refund(bought_on="2026-03-01"), False),
        ({"missing": "order.refund.bought_on"}, propose(Reserve, sku="S-1"), False),
        ({"missing": "bought_on", "action": "order.refund"}, refund(), True),
        ({"field": "order.refund.bought_on", "older_than": "9d"}, refund(bought_on="2026-02-28"), True),
        ({"field": "order.refund.bought_on", "older_than": "9d"}, refund(bought_on="2026-03-01"), False),
        ({"field": "order.refund.bought_on", "older_than": "9d"}, refund(bought_on="2030-03-01"), False),
        ({"field": "order.refund.bought_on", "older_than": "9d"}, refund(), True),
        ({"field": "order.refund.bought_on", "older_than": "9d"}, propose(Reserve, sku="S-1"), False),
        (AS_OF, refund(bought_on="2026-01-01", asked_on="2026-01-11"), True),
        (AS_OF, refund(bought_on="2026-01-01", asked_on="2026-01-10"), False),
        (AS_OF, refund(bought_on="2026-01-01"), True),
        ({"action": "order.refund", "over": "10.00 EUR", "sensitivity": "financial"}, refund(), True),
        ({"action": "order.refund", "over": "90.00 EUR", "sensitivity": "financial"}, refund(), False),
    ],
)
def test_every_kind_of_rule(rule: dict[str, Any], action: ProposedAction, expected: bool) -> None:
    """A rule fires where all of its conditions hold; what cannot be decided counts as holding."""
    assert fires(rule, action) is expected


@pytest.mark.parametrize(("taken", "expected"), [({"paid"}, True), (set(), False)])
def test_a_taken_claim(taken: set[str], expected: bool) -> None:
    """A claim rule fires where another request holds the claim."""
    assert (
        fires({"claim": "paid"}, refund(), facts=Facts(NOW, claims_taken=frozenset(taken)), claims=CLAIMS) is expected
    )


@pytest.mark.parametrize("novel", ["order.refund.payee", "payee"])
def test_a_novel_value(novel: str) -> None:
    """A novelty rule fires on the path that the store found new, on its own action type only."""
    rule = {"novel": novel, "action": "order.refund"}
    facts = Facts(NOW, novel=frozenset({"order.refund.payee"}))
    assert fires(rule, refund(), facts=facts)
    assert not fires(rule, refund(), facts=Facts(NOW))
    assert not fires(rule, propose(Reserve, sku="S-1"), facts=facts)


def test_conditions_must_hold_for_one_action() -> None:
    """Conditions that hold only for different actions do not make a rule fire."""
    rule = {"reversible": True, "over": "1.00 EUR"}
    assert not fires(rule, refund(), propose(Reserve, sku="S-1"))


def test_a_finding_of_another_action_does_not_count() -> None:
    """With an action named, only findings on such an action make the rule fire."""
    rule = {"finding": "quote_unrelated", "action": "stock.reserve"}
    assert not fires(rule, refund(note="x", evidence=[AMOUNT_QUOTE, NOTE]), propose(Reserve, sku="S-1"))


def assessed(*tiers: str, rules: tuple[TypedRule, ...] = (), validation: Validation | None = None) -> Assessment:
    """The assessment of a good refund under one unconditional rule for each tier."""
    in_force = policy(
        tiers=[{"tier": tier, "because": f"always {tier}"} for tier in tiers],
        decisions={
            "low": "auto",
            "medium": {"review": {"roles": ["clerk"], "people": 1, "expires_after": "2d"}},
            "high": {"review": {"roles": ["lead", "finance"], "people": 2, "expires_after": "12h"}},
            "critical": "refuse",
        },
    )
    proposal = sealed(refund())
    return assess(proposal, validation or judged(proposal), Facts(NOW), in_force, rules)


def test_the_highest_tier_wins_and_every_reason_stays() -> None:
    """Every rule that fires adds its reason; the order of rules does not matter to the tier."""
    result = assessed("medium", "high", "low")
    assert result.tier is Tier.HIGH
    assert [reason.because for reason in result.reasons] == ["always medium", "always high", "always low"]
    assert result.decision == "review"
    assert result.demand == Demand(roles=("lead", "finance"), people=2, expires_after=timedelta(hours=12))


@pytest.mark.parametrize(
    ("tiers", "tier", "decision"),
    [((), Tier.LOW, "auto"), (("medium",), Tier.MEDIUM, "review"), (("critical", "low"), Tier.CRITICAL, "refuse")],
)
def test_the_tier_selects_the_decision(tiers: tuple[str, ...], tier: Tier, decision: str) -> None:
    """No rule means low; each tier means what the table says, and only a review has a demand."""
    result = assessed(*tiers)
    assert (result.tier, result.decision) == (tier, decision)
    assert (result.demand is not None) == (decision == "review")
    assert (result.policy_version, result.mode) == ("1", "live")


def test_what_validation_refused_is_refused() -> None:
    """No tier makes a refused proposal anything else."""
    proposal = sealed(refund(evidence=()))
    assert assessed(validation=judged(proposal)).decision == "refuse"


def test_what_validation_wants_reviewed_is_never_automatic() -> None:
    """An automatic tier becomes the lowest review above it."""
    proposal = sealed(refund())
    unsure = judged(proposal, rules=policy(limits={"order.refund": "50.00 USD"}))
    assert unsure.verdict == "review"
    result = assessed(validation=unsure)
    assert (result.tier, result.decision) == (Tier.LOW, "review")
    assert result.demand is not None
    assert result.demand.roles == ("clerk",)
    no_review = policy(decisions={"low": "auto", "medium": "auto", "high": "auto", "critical": "refuse"})
    assert assess(proposal, unsure, Facts(NOW), no_review).decision == "refuse"


def test_typed_rules_speak_beside_the_file() -> None:
    """A rule in Python sees proposal, validation and facts, and its reason counts like any other."""

    def large(proposal: Sealed, validation: Validation, facts: Facts) -> Reason | None:
        amount = proposal.actions[0].values["amount"]["minor"]
        return Reason(Tier.CRITICAL, "large", f"{amount} at {facts.now.year}") if amount > 4000 else None

    result = assessed("low", rules=(large,))
    assert result.tier is Tier.CRITICAL
    assert result.reasons[-1] == Reason(Tier.CRITICAL, "large", "4820 at 2026")
    assert assessed(rules=(lambda *_: None,)).tier is Tier.LOW


@pytest.mark.parametrize("answer", [KeyError("x"), ZeroDivisionError()])
def test_a_typed_rule_that_fails_counts_as_critical(answer: Exception) -> None:
    """A bug in a rule stops the proposal and names the rule."""

    def broken(*_: object) -> Reason | None:
        raise answer

    result = assessed(rules=(broken,))
    assert (result.tier, result.decision) == (Tier.CRITICAL, "refuse")
    assert result.reasons[0].code == "rule broken"
    assert type(answer).__name__ in result.reasons[0].because


def test_a_typed_rule_that_answers_nonsense_counts_as_critical() -> None:
    """A rule that answers with anything but a reason or None lets nothing pass."""
    nonsense: Any = lambda *_: True  # noqa: E731 - a rule without a type
    assert assessed(rules=(nonsense,)).tier is Tier.CRITICAL


def test_tiers_are_ordered_by_harm() -> None:
    """Ranks follow harm, not the alphabet."""
    assert [tier.rank for tier in (Tier.LOW, Tier.MEDIUM, Tier.HIGH, Tier.CRITICAL)] == [0, 1, 2, 3]
    assert Money.parse("48.20 EUR").minor == 4820
