"""What a reviewer is shown, and whether an approval still covers what policy demands now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from pydantic_core import to_jsonable_python

from policies.actions import Trust
from policies.hashing import REVIEW, canonical_bytes, domain_hash
from policies.money import MAX_EXACT_INTEGER
from policies.redaction import visible
from policies.risk import Assessment
from policies.rules import Demand
from policies.sealing import Sealed, SealedAction
from policies.validation import Validation


def still_satisfied(approved: Demand | None, now: Assessment) -> bool:
    """Whether what released a proposal also satisfies the assessment made now.

    `approved` is the demand that the votes satisfied, None where the proposal was released as automatic. Satisfied
    means: live, and automatic, or a review of no more people, whose roles include all the approving ones, with no
    shorter expiry, and that lets in no later whoever the approval let in as time passed. A refusal is never satisfied.
    """
    if now.mode != "live" or now.decision == "refuse":
        return False
    if now.demand is None:
        return True
    return (
        approved is not None
        and now.demand.people <= approved.people
        and set(approved.roles) <= set(now.demand.roles)
        and approved.expires_after <= now.demand.expires_after
        and all(_lets_in(now.demand, role, step.after) for step in approved.escalate for role in step.roles)
    )


def _lets_in(demand: Demand, role: str, after: timedelta) -> bool:
    """Whether whoever holds `role` may decide once it has waited that long."""
    return role in demand.roles or any(role in step.roles and step.after <= after for step in demand.escalate)


def review_document(
    *,
    sealed: Sealed,
    validation: Validation,
    assessment: Assessment,
    workflow: str,
    initiator: str,
    subject: str | None,
    request_fields: Mapping[str, Any],
    trust: Mapping[str, Trust],
    approval_round: int,
    edited_by: Sequence[str] = (),
    supplied_by: Sequence[str] = (),
) -> bytes:
    """Canonical bytes of everything a reviewer must see, built once; every surface renders all of it.

    `edited_by` names the people who changed parameters after the model had proposed them; `supplied_by` those who added
    to the request what it lacked, where anybody did.

    Hidden, reordering and unstorable characters are written as escapes, numbers without canonical form as text.
    """
    demand = assessment.demand
    return canonical_bytes(
        _showable(
            {
                "request_id": sealed.request_id,
                "workflow": workflow,
                "initiator": initiator,
                "subject": subject,
                "revision": sealed.revision,
                "round": approval_round,
                "edited_by": list(edited_by),
                **({"supplied_by": list(supplied_by)} if supplied_by else {}),
                "proposal_hash": sealed.hash.hex(),
                "policy_version": assessment.policy_version,
                "tier": assessment.tier.value,
                "reasons": [{"tier": one.tier.value, "because": one.because} for one in assessment.reasons],
                "sources": [
                    {"name": name, "trust": trust.get(name, Trust.UNTRUSTED).value, "value": value}
                    for name, value in request_fields.items()
                ],
                "actions": [_shown_action(action) for action in sealed.actions],
                "findings": [
                    {
                        "code": one.code,
                        "severity": one.severity.value,
                        "parameter": one.parameter,
                        "message": one.message,
                    }
                    for one in validation.findings
                ],
                "weakest_trust": validation.weakest_trust.value,
                "parties": sorted(validation.parties),
                "roles": list(demand.roles) if demand else [],
                "people": demand.people if demand else 0,
                "escalations": [
                    {"after": int(step.after.total_seconds()), "roles": list(step.roles)}
                    for step in (demand.escalate if demand else ())
                ],
                "expires_after": int(demand.expires_after.total_seconds()) if demand else 0,
            }
        )
    )


def review_hash(document: bytes) -> bytes:
    """The name of a review document; a vote is bound to it and to the proposal's hash."""
    return domain_hash(REVIEW, document)


def _shown_action(action: SealedAction) -> dict[str, Any]:
    kind = action.action_type
    return {
        "action_id": action.action_id,
        "type": kind.name,
        "parameters": dict(action.values),
        "parameters_hash": action.parameters_hash.hex(),
        "adapter": action.adapter,
        "target": action.target,
        "reversible": kind.reversible,
        "undo": kind.undo.action_type.name if kind.undo else None,
        "sensitivity": kind.sensitivity,
        "recipient_scope": kind.recipient_scope,
        "notification": kind.notification,
        "evidence": [{"parameter": one.parameter, "source": one.source, "quote": one.quote} for one in action.evidence],
        "rationale": action.rationale,
        "confidence": None if action.confidence is None else f"{action.confidence:f}",
    }


def _showable(value: Any) -> Any:
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int | float):
        return value if -MAX_EXACT_INTEGER <= value <= MAX_EXACT_INTEGER else str(value)
    if isinstance(value, Mapping):
        return {visible(str(name)): _showable(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_showable(item) for item in value]
    return _showable(to_jsonable_python(value, fallback=str))
