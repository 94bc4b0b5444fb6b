"""How much harm a proposal could do, and what its tier demands."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Literal, TypeAlias

from policies.actions import Trust
from policies.amounts import amounts_in, exceeds
from policies.policy import Mode, Policy
from policies.rules import Demand, Rule
from policies.sealing import Sealed, SealedAction
from policies.tiers import Tier
from policies.validation import Validation

__all__ = ["Assessment", "Demand", "Facts", "Reason", "Tier", "TypedRule", "assess"]

Outcome: TypeAlias = Literal["auto", "review", "refuse"]


@dataclass(frozen=True, slots=True)
class Facts:
    """What the store knows at one instant.

    Attributes:
        now: the instant, with its zone; ages of dates are counted back from its day.
        claims_taken: kinds of claim of this proposal that another request holds.
        novel: parameter paths whose value no completed request of the workflow has had.
        edited: a reviewer changed parameters of it.
        supplied: somebody else than its initiator added to the request what it lacked.
    """

    now: datetime
    claims_taken: frozenset[str] = frozenset()
    novel: frozenset[str] = frozenset()
    edited: bool = False
    supplied: bool = False


@dataclass(frozen=True, slots=True)
class Reason:
    """One rule that fired: the tier it asks for, its code, and the words people read."""

    tier: Tier
    code: str
    because: str


TypedRule: TypeAlias = Callable[[Sealed, Validation, Facts], Reason | None]
"""A rule in Python for what the policy file cannot say."""


@dataclass(frozen=True, slots=True)
class Assessment:
    """The tier with its reasons, and what follows: `demand` is there exactly when the decision is `review`."""

    tier: Tier
    decision: Outcome
    reasons: tuple[Reason, ...]
    demand: Demand | None
    policy_version: str
    mode: Mode


def assess(
    sealed: Sealed, validation: Validation, facts: Facts, policy: Policy, rules: Sequence[TypedRule] = ()
) -> Assessment:
    """The assessment of a validated proposal.

    Every rule that fires adds its reason and the highest tier decides; none: low. What validation refused is refused
    whatever the tier; what it wants reviewed is never automatic, and neither is what a reviewer edited or an operator
    supplied: somebody else decides on that. A typed rule that fails counts as critical.
    """
    reasons = [
        Reason(rule.tier, f"tiers[{index}]", rule.because)
        for index, rule in enumerate(policy.tiers)
        if _fires(rule, sealed, validation, facts)
    ]
    reasons.extend(reason for rule in rules if (reason := _typed(rule, sealed, validation, facts)) is not None)
    tier = max((reason.tier for reason in reasons), key=lambda one: one.rank, default=Tier.LOW)
    if facts.edited:
        reasons.append(Reason(tier, "edited", "a reviewer changed what the model proposed, so somebody else decides"))
    if facts.supplied:
        reasons.append(Reason(tier, "supplied", "an operator added to the request, so somebody else decides"))
    needs_people = facts.edited or facts.supplied or validation.verdict == "review"
    outcome, demand = _decide(tier, validation, policy, needs_people=needs_people)
    return Assessment(tier, outcome, tuple(reasons), demand, policy.version, policy.mode)


def _decide(tier: Tier, validation: Validation, policy: Policy, *, needs_people: bool) -> tuple[Outcome, Demand | None]:
    if validation.verdict == "refused":
        return "refuse", None
    decision = policy.decisions[tier]
    if needs_people and decision.kind == "auto":
        higher = [policy.decisions[one] for one in Tier if one.rank > tier.rank]
        reviews = [one for one in higher if one.kind == "review"]
        return ("review", reviews[0].demand) if reviews else ("refuse", None)
    return decision.kind, decision.demand


def _typed(rule: TypedRule, sealed: Sealed, validation: Validation, facts: Facts) -> Reason | None:
    name = getattr(rule, "__name__", type(rule).__name__)
    try:
        answer: object = rule(sealed, validation, facts)
    except Exception as error:  # noqa: BLE001 - the workflow's own code; without its answer nothing may pass
        return Reason(Tier.CRITICAL, f"rule {name}", f"the rule failed with {type(error).__name__}")
    if answer is None or isinstance(answer, Reason):
        return answer
    return Reason(
        Tier.CRITICAL, f"rule {name}", f"the rule answered with {type(answer).__name__}, not a Reason or None"
    )


def _fires(rule: Rule, sealed: Sealed, validation: Validation, facts: Facts) -> bool:
    if rule.evidence == "untrusted" and validation.weakest_trust is not Trust.UNTRUSTED:
        return False
    if rule.claim is not None and rule.claim not in facts.claims_taken:
        return False
    if rule.novel is not None and rule.full_path(rule.novel) not in facts.novel:
        return False
    if rule.finding is not None and not any(finding.code == rule.finding for finding in validation.findings):
        return False
    return any(
        all(_type_conditions(rule, action)) and all(_conditions(rule, action, validation, facts))
        for action in sealed.actions
    )


def _type_conditions(rule: Rule, action: SealedAction) -> Iterator[bool]:
    """The rule's conditions on what the action type declares, as far as the rule states them."""
    kind = action.action_type
    if rule.action is not None:
        yield rule.action == kind.name
    if rule.sensitivity is not None:
        yield rule.sensitivity == kind.sensitivity
    if rule.recipient_scope is not None:
        yield rule.recipient_scope == kind.recipient_scope
    if rule.reversible is not None:
        yield rule.reversible == kind.reversible


def _conditions(rule: Rule, action: SealedAction, validation: Validation, facts: Facts) -> Iterator[bool]:
    """The rule's conditions on the action itself, as far as the rule states them."""
    if rule.over is not None:
        yield any(exceeds(amount, rule.over) is not False for _, amount in amounts_in(action.action))
    if rule.confidence_below is not None:
        yield action.confidence is None or float(action.confidence) < rule.confidence_below
    if rule.evidence == "unquoted":
        yield not action.evidence
    if rule.finding is not None and rule.action is not None:
        yield any(
            finding.code == rule.finding and _concerns(finding.parameter, action) for finding in validation.findings
        )
    if rule.novel is not None:
        yield _parameter(rule, rule.novel, action) is not None
    if rule.missing is not None:
        missing = _parameter(rule, rule.missing, action)
        yield missing is not None and getattr(action.action, missing) is None
    if rule.field is not None and rule.older_than is not None:
        dated = _parameter(rule, rule.field, action)
        end = None if rule.as_of is None else _parameter(rule, rule.as_of, action)
        until = facts.now if end is None else getattr(action.action, end)
        yield dated is not None and _is_older(getattr(action.action, dated), until, rule.older_than)


def _parameter(rule: Rule, path: str, action: SealedAction) -> str | None:
    """The parameter that the path means on this action; None where it speaks of another action type."""
    action_type, _, parameter = rule.full_path(path).rpartition(".")
    return parameter if action_type == action.action_type.name else None


def _concerns(path: str, action: SealedAction) -> bool:
    return path == action.action_id or path.startswith(f"{action.action_id}.")


def _is_older(value: object, until: object, limit: timedelta) -> bool:
    start, end = (one.date() if isinstance(one, datetime) else one for one in (value, until))
    return not isinstance(start, date) or not isinstance(end, date) or end - start > limit
