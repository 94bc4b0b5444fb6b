"""Why the database would not start an effect, and what happens to the request then."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from policies.states import Event


class Refusal(StrEnum):
    """The answers of `start_effects`, in the order it checks them."""

    NO_SUCH_REQUEST = "no_such_request"
    LEASE_LOST = "lease_lost"
    NOT_EXECUTING = "not_executing"
    NOT_COMPENSATING = "not_compensating"
    RESTORED = "restored"
    NOTHING_TO_UNDO = "nothing_to_undo"
    LATER_ACTION_OPEN = "later_action_open"
    CANCEL_REQUESTED = "cancel_requested"
    WRONG_PROVIDER = "wrong_provider"
    HASH_MISMATCH = "hash_mismatch"
    NO_SUCH_ACTION = "no_such_action"
    PARAMETERS_CHANGED = "parameters_changed"
    EFFECT_IN_FLIGHT = "effect_in_flight"
    EFFECT_DONE = "effect_done"
    EFFECT_REFUSED = "effect_refused"
    EFFECT_UNKNOWN = "effect_unknown"
    EFFECT_FENCED = "effect_fenced"
    EFFECT_LATE = "effect_late"
    KEY_FORGOTTEN = "key_forgotten"
    EARLIER_ACTION_OPEN = "earlier_action_open"
    PAUSED = "paused"
    INITIATOR_DISABLED = "initiator_disabled"
    NOT_RECHECKED = "not_rechecked"
    NOT_LIVE = "not_live"
    DECISION_REFUSES = "decision_refuses"
    NO_APPROVAL = "no_approval"
    NOT_RELEASED = "not_released"
    APPROVAL_EXPIRED = "approval_expired"
    DENIED = "denied"
    TOO_FEW_VOTES = "too_few_votes"
    BREAKER_OPEN = "breaker_open"
    PROVIDER_BUSY = "provider_busy"
    RETRY_BUDGET = "retry_budget"


MOVED_ON = frozenset({Refusal.NO_SUCH_REQUEST, Refusal.LEASE_LOST, Refusal.NOT_EXECUTING, Refusal.NOT_COMPENSATING})
"""The request is somebody else's now: leave it alone."""

WAITS = frozenset(
    {
        Refusal.RESTORED,
        Refusal.PAUSED,
        Refusal.NOT_RECHECKED,
        Refusal.CANCEL_REQUESTED,
        Refusal.BREAKER_OPEN,
        Refusal.PROVIDER_BUSY,
        Refusal.RETRY_BUDGET,
    }
)
"""Nothing is wrong with the request; it is looked at again later."""

NOT_STARTED: Final = "not started: "
"""Begins the reason of a request that waits for one of these to pass."""

_STALE = frozenset({Refusal.TOO_FEW_VOTES, Refusal.NO_APPROVAL, Refusal.NOT_RELEASED})
"""Votes that counted once count no longer: people are asked again."""


def event_after(refusal: Refusal, *, effects_begun: bool) -> Event | None:
    """What happens to a request whose effect may not start; None: it stays as it is.

    Once any effect of it was begun nothing may be asked or proposed anew, so every refusal that does not pass by itself
    goes to a person.
    """
    if refusal in MOVED_ON or refusal in WAITS:
        return None
    if effects_begun:
        return Event.GAVE_UP
    if refusal is Refusal.APPROVAL_EXPIRED:
        return Event.APPROVAL_EXPIRED
    if refusal in _STALE:
        return Event.APPROVAL_STALE
    return Event.REVIEW_NEEDED
