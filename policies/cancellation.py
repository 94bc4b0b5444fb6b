"""What a cancellation means for a request whose effects have begun."""

from __future__ import annotations

from collections.abc import Sequence

from policies.effects import EffectState
from policies.states import Event

_UNSETTLED = frozenset({EffectState.IN_FLIGHT, EffectState.UNKNOWN, EffectState.LATE})


def after_cancel(reversible: Sequence[bool], states: Sequence[EffectState | None]) -> Event | None:
    """The event that stops an executing request; None: it goes on.

    Nothing done: it ends. Only what can be undone is done: it is undone. An action that cannot be undone is done: it
    goes on, since after the pivot a saga only goes forward. One is in flight, unknown or late: that is settled first.
    """
    if _UNSETTLED.intersection(states):
        return None
    done = [can_undo for can_undo, state in zip(reversible, states, strict=True) if state is EffectState.DONE]
    if not done:
        return Event.CANCELLED
    return Event.UNDO_NEEDED if all(done) else None
