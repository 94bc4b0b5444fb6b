"""What follows from the effects so far."""

from __future__ import annotations

from itertools import product

import pytest

from policies.effects import EffectState
from policies.saga import decide
from policies.states import TRANSITIONS, Event, State

STATES: list[EffectState | None] = [None, *EffectState]
DONE, REFUSED = EffectState.DONE, EffectState.REFUSED


@pytest.mark.parametrize(
    ("reversible", "states", "event"),
    [
        ([True, False], [DONE, DONE], Event.EFFECTS_DONE),
        ([True, False], [DONE, None], None),
        ([True, False], [DONE, EffectState.INTENDED], None),
        ([True, False], [REFUSED, None], Event.EFFECT_REFUSED),
        ([True, False], [DONE, REFUSED], Event.UNDO_NEEDED),
        ([True, False, False], [DONE, DONE, REFUSED], Event.GAVE_UP),
        ([True, False], [DONE, EffectState.UNKNOWN], None),
        ([True, False], [REFUSED, EffectState.IN_FLIGHT], None),
        ([True, False], [DONE, EffectState.FENCED], Event.GAVE_UP),
        ([False], [EffectState.LATE], Event.GAVE_UP),
    ],
)
def test_stories(reversible: list[bool], states: list[EffectState | None], event: Event | None) -> None:
    """Each story ends as the saga's rules say."""
    assert decide(reversible, states) is event


@pytest.mark.parametrize("length", [1, 2, 3])
def test_every_combination(length: int) -> None:
    """Over all plans and outcomes: what may have happened waits, the pivot is never undone, nothing is forgotten."""
    for reversible in product([True, False], repeat=length):
        for states in product(STATES, repeat=length):
            event = decide(reversible, states)
            done = [can_undo for can_undo, state in zip(reversible, states, strict=True) if state is DONE]
            unsettled = {EffectState.IN_FLIGHT, EffectState.UNKNOWN} & set(states)
            person = {EffectState.FENCED, EffectState.LATE} & set(states)
            if unsettled:
                assert event is None
            elif person or (REFUSED in states and not all(done)):
                assert event is Event.GAVE_UP
            elif REFUSED in states:
                assert event is (Event.UNDO_NEEDED if done else Event.EFFECT_REFUSED)
            else:
                assert event is (Event.EFFECTS_DONE if len(done) == length else None)
            if event is not None:
                assert (State.EXECUTING, event) in TRANSITIONS


@pytest.mark.parametrize(("reversible", "states"), [([], []), ([True], []), ([True], [DONE, DONE])])
def test_plans_and_outcomes_must_match(reversible: list[bool], states: list[EffectState | None]) -> None:
    """A plan without an outcome for each action raises instead of deciding."""
    with pytest.raises(ValueError, match="one state for each action"):
        decide(reversible, states)
