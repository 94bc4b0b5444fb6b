"""The state machine of a request: one table, read by code, by the database trigger and by the tests."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from policies.errors import UnknownTransition


class State(StrEnum):
    """Where a request stands. Waiting to retry is not a state: it is `next_eligible_at` on the state one is in."""

    RECEIVED = "received"  # accepted and stored; nothing proposed yet
    PROPOSAL_READY = "proposal_ready"  # a sealed proposal exists; validation and assessment judge it
    AWAITING_APPROVAL = "awaiting_approval"  # people decide
    EXECUTING = "executing"  # released; effects may start
    COMPENSATING = "compensating"  # a step before the pivot failed; done steps are being undone
    NEEDS_REVIEW = "needs_review"  # parked: the model abstained, or only a person can tell
    DEAD_LETTERED = "dead_lettered"  # parked after bounded attempts; leaves by an explicit redrive
    COMPENSATION_FAILED = "compensation_failed"  # parked: an undo did not work; a person resolves it
    COMPLETED = "completed"
    REJECTED = "rejected"
    EXPIRED = "expired"
    CANCELLED = "cancelled"
    FAILED = "failed"
    COMPENSATED = "compensated"


TERMINAL = frozenset({State.COMPLETED, State.REJECTED, State.EXPIRED, State.CANCELLED, State.FAILED, State.COMPENSATED})
PARKED = frozenset({State.NEEDS_REVIEW, State.DEAD_LETTERED, State.COMPENSATION_FAILED})
OPEN = frozenset(State) - TERMINAL - PARKED


class Event(StrEnum):
    """What happened to a request. The same state and event always select the same next state."""

    PROPOSAL_RECORDED = "proposal_recorded"
    ABSTAINED = "abstained"
    VALIDATION_REFUSED = "validation_refused"
    REVIEW_NEEDED = "review_needed"
    POLICY_REFUSED = "policy_refused"
    APPROVAL_REQUIRED = "approval_required"
    AUTO_RELEASED = "auto_released"
    SHADOW_RECORDED = "shadow_recorded"
    APPROVED = "approved"
    DENIED = "denied"
    APPROVAL_EXPIRED = "approval_expired"
    APPROVAL_STALE = "approval_stale"
    EDITED = "edited"
    EFFECTS_DONE = "effects_done"
    EFFECT_REFUSED = "effect_refused"
    UNDO_NEEDED = "undo_needed"
    UNDO_DONE = "undo_done"
    UNDO_FAILED = "undo_failed"
    GAVE_UP = "gave_up"
    CANCELLED = "cancelled"
    INPUT_SUPPLIED = "input_supplied"
    REDRIVEN = "redriven"
    DISCARDED = "discarded"
    RESOLVED_DONE = "resolved_done"
    RESOLVED_FAILED = "resolved_failed"
    RESOLVED_COMPENSATED = "resolved_compensated"


class Proof(StrEnum):
    """Evidence a transition must carry; it stands in the audit event written in the same transaction."""

    PROPOSAL_HASH = "proposal_hash"
    REASON = "reason"
    FINDINGS = "findings"
    ASSESSMENT = "assessment"
    RESOLUTION = "resolution"
    OUTCOME = "outcome"
    ACTOR = "actor"


@dataclass(frozen=True, slots=True)
class Transition:
    """One allowed step: where it leads and what it must prove."""

    to: State
    requires: frozenset[Proof]


def _to(state: State, *requires: Proof) -> Transition:
    return Transition(state, frozenset(requires))


TRANSITIONS: dict[tuple[State, Event], Transition] = {
    (State.RECEIVED, Event.PROPOSAL_RECORDED): _to(State.PROPOSAL_READY, Proof.PROPOSAL_HASH),
    (State.RECEIVED, Event.ABSTAINED): _to(State.NEEDS_REVIEW, Proof.REASON),
    (State.RECEIVED, Event.REVIEW_NEEDED): _to(State.NEEDS_REVIEW, Proof.REASON),
    (State.RECEIVED, Event.GAVE_UP): _to(State.DEAD_LETTERED, Proof.REASON),
    (State.RECEIVED, Event.CANCELLED): _to(State.CANCELLED, Proof.ACTOR),
    (State.RECEIVED, Event.UNDO_NEEDED): _to(State.COMPENSATING, Proof.ACTOR),  # cancelled after a redrive
    (State.PROPOSAL_READY, Event.VALIDATION_REFUSED): _to(State.REJECTED, Proof.FINDINGS),
    (State.PROPOSAL_READY, Event.REVIEW_NEEDED): _to(State.NEEDS_REVIEW, Proof.REASON),
    (State.PROPOSAL_READY, Event.POLICY_REFUSED): _to(State.REJECTED, Proof.ASSESSMENT),
    (State.PROPOSAL_READY, Event.APPROVAL_REQUIRED): _to(State.AWAITING_APPROVAL, Proof.ASSESSMENT),
    (State.PROPOSAL_READY, Event.AUTO_RELEASED): _to(State.EXECUTING, Proof.ASSESSMENT),
    (State.PROPOSAL_READY, Event.SHADOW_RECORDED): _to(State.COMPLETED, Proof.ASSESSMENT),
    (State.PROPOSAL_READY, Event.GAVE_UP): _to(State.DEAD_LETTERED, Proof.REASON),
    (State.PROPOSAL_READY, Event.CANCELLED): _to(State.CANCELLED, Proof.ACTOR),
    (State.PROPOSAL_READY, Event.UNDO_NEEDED): _to(State.COMPENSATING, Proof.REASON),  # refused after a redrive
    (State.AWAITING_APPROVAL, Event.APPROVED): _to(State.EXECUTING, Proof.RESOLUTION),
    (State.AWAITING_APPROVAL, Event.DENIED): _to(State.REJECTED, Proof.RESOLUTION),
    (State.AWAITING_APPROVAL, Event.APPROVAL_EXPIRED): _to(State.EXPIRED, Proof.RESOLUTION),
    (State.AWAITING_APPROVAL, Event.APPROVAL_STALE): _to(State.PROPOSAL_READY, Proof.REASON),
    (State.AWAITING_APPROVAL, Event.EDITED): _to(State.PROPOSAL_READY, Proof.ACTOR, Proof.PROPOSAL_HASH),
    (State.AWAITING_APPROVAL, Event.REVIEW_NEEDED): _to(State.NEEDS_REVIEW, Proof.REASON),
    (State.AWAITING_APPROVAL, Event.GAVE_UP): _to(State.DEAD_LETTERED, Proof.REASON),
    (State.AWAITING_APPROVAL, Event.CANCELLED): _to(State.CANCELLED, Proof.ACTOR),
    (State.AWAITING_APPROVAL, Event.UNDO_NEEDED): _to(State.COMPENSATING, Proof.REASON),  # denied after a redrive
    (State.EXECUTING, Event.EFFECTS_DONE): _to(State.COMPLETED, Proof.OUTCOME),
    (State.EXECUTING, Event.EFFECT_REFUSED): _to(State.FAILED, Proof.OUTCOME),
    (State.EXECUTING, Event.UNDO_NEEDED): _to(State.COMPENSATING, Proof.OUTCOME),
    (State.EXECUTING, Event.APPROVAL_EXPIRED): _to(State.EXPIRED, Proof.RESOLUTION),
    (State.EXECUTING, Event.APPROVAL_STALE): _to(State.PROPOSAL_READY, Proof.REASON),
    (State.EXECUTING, Event.POLICY_REFUSED): _to(State.REJECTED, Proof.ASSESSMENT),
    (State.EXECUTING, Event.REVIEW_NEEDED): _to(State.NEEDS_REVIEW, Proof.REASON),
    (State.EXECUTING, Event.GAVE_UP): _to(State.DEAD_LETTERED, Proof.REASON),
    (State.EXECUTING, Event.CANCELLED): _to(State.CANCELLED, Proof.ACTOR),
    (State.COMPENSATING, Event.UNDO_DONE): _to(State.COMPENSATED, Proof.OUTCOME),
    (State.COMPENSATING, Event.UNDO_FAILED): _to(State.COMPENSATION_FAILED, Proof.OUTCOME),
    (State.NEEDS_REVIEW, Event.INPUT_SUPPLIED): _to(State.RECEIVED, Proof.ACTOR),
    (State.NEEDS_REVIEW, Event.DISCARDED): _to(State.FAILED, Proof.ACTOR, Proof.REASON),
    (State.NEEDS_REVIEW, Event.CANCELLED): _to(State.CANCELLED, Proof.ACTOR),
    (State.NEEDS_REVIEW, Event.UNDO_NEEDED): _to(State.COMPENSATING, Proof.ACTOR),
    (State.DEAD_LETTERED, Event.REDRIVEN): _to(State.RECEIVED, Proof.ACTOR, Proof.REASON),
    (State.DEAD_LETTERED, Event.DISCARDED): _to(State.FAILED, Proof.ACTOR, Proof.REASON),
    (State.DEAD_LETTERED, Event.CANCELLED): _to(State.CANCELLED, Proof.ACTOR),
    (State.DEAD_LETTERED, Event.UNDO_NEEDED): _to(State.COMPENSATING, Proof.ACTOR),
    (State.DEAD_LETTERED, Event.RESOLVED_DONE): _to(State.COMPLETED, Proof.ACTOR, Proof.REASON),
    (State.DEAD_LETTERED, Event.RESOLVED_FAILED): _to(State.FAILED, Proof.ACTOR, Proof.REASON),
    (State.COMPENSATION_FAILED, Event.RESOLVED_COMPENSATED): _to(State.COMPENSATED, Proof.ACTOR, Proof.REASON),
    (State.COMPENSATION_FAILED, Event.RESOLVED_FAILED): _to(State.FAILED, Proof.ACTOR, Proof.REASON),
}


def next_state(state: State | str, event: Event | str) -> State:
    """The state that `event` leads to from `state`.

    Raises:
        UnknownTransition: the table has no such row, or a name is not in the enums.
    """
    try:
        return TRANSITIONS[state, event].to  # type: ignore[index]  # members and their plain texts are equal as keys
    except KeyError:
        raise UnknownTransition(
            f"no transition leaves {state!r} by {event!r}; reload the request and look at its ledger"
        ) from None
