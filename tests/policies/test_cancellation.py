"""What a cancellation means once effects have begun."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.cancellation import after_cancel
from policies.effects import EffectState
from policies.states import Event

DONE, REFUSED = EffectState.DONE, EffectState.REFUSED
PLANS = st.lists(st.tuples(st.booleans(), st.sampled_from([None, *EffectState])), min_size=1, max_size=5)


@pytest.mark.parametrize(
    ("reversible", "states", "event"),
    [
        ([True, False], [None, None], Event.CANCELLED),
        ([True, False], [EffectState.INTENDED, None], Event.CANCELLED),
        ([True, False], [DONE, None], Event.UNDO_NEEDED),
        ([True, False], [DONE, REFUSED], Event.UNDO_NEEDED),
        ([True, False], [DONE, DONE], None),
        ([False, False], [DONE, None], None),
        ([True, False], [EffectState.IN_FLIGHT, None], None),
        ([True, False], [DONE, EffectState.UNKNOWN], None),
        ([True, False], [EffectState.LATE, None], None),
        ([True, False], [REFUSED, None], Event.CANCELLED),
    ],
)
def test_stories(reversible: list[bool], states: list[EffectState | None], event: Event | None) -> None:
    """Nothing done ends it, what can be undone is undone, past the pivot or in doubt it goes on."""
    assert after_cancel(reversible, states) is event


@given(PLANS)
def test_it_never_ends_over_an_effect(plan: list[tuple[bool, EffectState | None]]) -> None:
    """`cancelled` only where nothing happened or may happen; undone only where everything that happened can be."""
    event = after_cancel([one for one, _ in plan], [state for _, state in plan])
    happened = [can_undo for can_undo, state in plan if state in (DONE, EffectState.LATE)]
    in_doubt = any(state in (EffectState.IN_FLIGHT, EffectState.UNKNOWN, EffectState.LATE) for _, state in plan)
    if event is Event.CANCELLED:
        assert not happened
    if event is Event.UNDO_NEEDED:
        assert happened
        assert all(happened)
    assert (event is None) == (in_doubt or not all(happened))
