"""What follows from the outcomes of a proposal's effects so far."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from policies.effects import EffectState
from policies.states import Event

_UNDECIDED = frozenset({EffectState.IN_FLIGHT, EffectState.UNKNOWN})


class Standing(StrEnum):
    """What a request has done to the world so far; the database answers the same (`effects_standing`)."""

    NOTHING = "nothing"  # no effect of it stands
    REVERSIBLE = "reversible"  # everything that stands can be undone
    IRREVERSIBLE = "irreversible"  # past the pivot
    UNCERTAIN = "uncertain"  # an effect is in flight, unknown or late


def decide(reversible: Sequence[bool], states: Sequence[EffectState | None]) -> Event | None:
    """The event that the effects of an executing request amount to; None: there is still something to do or to learn.

    Both sequences hold the actions in their order; the state of an action that has no effect yet is None. The first
    irreversible action done is the pivot: a refusal before it undoes what was done, a refusal after it, or an effect
    that only a person can settle (`fenced`, `late`), goes to a person and undoes nothing.

    Raises:
        ValueError: the sequences differ in length or are empty.
    """
    if not states or len(reversible) != len(states):
        raise ValueError("decide needs one state for each action, and at least one action")
    if _UNDECIDED.intersection(states):
        return None
    if EffectState.FENCED in states or EffectState.LATE in states:
        return Event.GAVE_UP
    done = [can_undo for can_undo, state in zip(reversible, states, strict=True) if state is EffectState.DONE]
    if EffectState.REFUSED not in states:
        return Event.EFFECTS_DONE if len(done) == len(states) else None
    if not done:
        return Event.EFFECT_REFUSED
    return Event.UNDO_NEEDED if all(done) else Event.GAVE_UP


def after_refusal(event: Event, standing: Standing) -> Event:
    """What a later round's `event` (refused, denied, expired) comes to for a request of which effects may stand.

    Nothing stands: the event itself. What can be undone is undone. Past the pivot, or while an effect is uncertain, a
    person decides. In shadow mode nothing is begun, an undo neither, so there a person decides as well.
    """
    if standing is Standing.NOTHING:
        return event
    if standing is Standing.REVERSIBLE and event is not Event.SHADOW_RECORDED:
        return Event.UNDO_NEEDED
    return Event.GAVE_UP
