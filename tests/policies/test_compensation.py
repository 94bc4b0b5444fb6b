"""Undoing: planned before it is needed, last first, nothing twice, and every done effect ends in one bucket."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.actions import Action
from policies.compensation import Bucket, after_undo, buckets, next_undo, recovery, undo_fields, undo_of
from policies.effects import EFFECT_TRANSITIONS, EffectState
from policies.errors import DefinitionError
from policies.hashing import PARAMETERS, canonical_bytes, domain_hash
from policies.saga import Standing, after_refusal, decide
from policies.states import TRANSITIONS, Event, State

DONE, REFUSED, UNKNOWN, INTENDED = EffectState.DONE, EffectState.REFUSED, EffectState.UNKNOWN, EffectState.INTENDED
ANY = st.sampled_from([None, *EffectState])
Plan = list[tuple[bool, EffectState | None, EffectState | None]]
PLANS = st.lists(st.tuples(st.booleans(), ANY, ANY), min_size=1, max_size=6)
States = list[EffectState | None]


class Unbook(Action, name="room.unbook", reversible=False):
    """Gives a room back."""

    room: str
    reference: str


class Book(Action, name="room.book", reversible=True, undo=Unbook):
    """Takes a room."""

    room: str
    nights: int


class Paint(Action, name="room.paint", reversible=False):
    """Cannot be undone."""

    room: str


def test_the_undo_is_written_down_before_it_is_needed() -> None:
    """The recovery descriptor names the undo and the values it takes over; where nothing undoes it, it says so."""
    assert undo_fields(Book.action_type) == ("room",)
    assert recovery(Book.action_type, {"room": "12", "nights": 2}) == {
        "undo": "room.unbook",
        "parameters": {"room": "12"},
    }
    assert (undo_fields(Paint.action_type), recovery(Paint.action_type, {"room": "12"})) == ((), {"undo": None})


def test_the_undo_takes_values_and_the_providers_reference() -> None:
    """What is hashed is what is sent."""
    undo = undo_of(Book.action_type, {"room": "12", "nights": 2}, "B-7")
    assert undo.action == Unbook(room="12", reference="B-7")
    assert undo.parameters_hash == domain_hash(PARAMETERS, canonical_bytes({"room": "12", "reference": "B-7"}))


def test_an_undo_that_cannot_be_written_down_says_why() -> None:
    """The provider's reference is not known (a person resolved the effect), or nothing undoes the action."""
    with pytest.raises(DefinitionError, match=r"room\.unbook cannot undo it: reference"):
        undo_of(Book.action_type, {"room": "12", "nights": 2}, None)
    with pytest.raises(DefinitionError, match="no undo"):
        undo_of(Paint.action_type, {"room": "12"}, "P-1")


def test_an_undo_must_fit_its_action() -> None:
    """A parameter that the action lacks, or has with another type, is found at definition."""

    class Unlight(Action, name="lamp.unlight", reversible=False):
        lamp: str
        colour: str
        shade: str = "none"

    class Light(Action, name="lamp.light", reversible=True, undo=Unlight):
        lamp: str

    class Unopen(Action, name="door.close", reversible=False):
        door: str

    class Open(Action, name="door.open", reversible=True, undo=Unopen):
        door: int

    with pytest.raises(DefinitionError, match="needs colour, which the action does not have"):
        undo_fields(Light.action_type)
    with pytest.raises(DefinitionError, match="door"):
        undo_fields(Open.action_type)


def _undo_all(reversible: Sequence[bool], states: States, refused: int | None) -> tuple[list[int], States]:
    """Undo as the steps do until nothing is left; the undo of index `refused` is refused."""
    undone: States = [None] * len(states)
    order = []
    while (index := next_undo(reversible, states, undone)) is not None:
        assert undone[index] is None, "nothing is compensated twice"
        order.append(index)
        undone[index] = REFUSED if index == refused else DONE
    return order, undone


@given(st.lists(st.booleans(), min_size=1, max_size=6), st.data())
def test_before_the_pivot_what_is_done_is_undone_last_first(done: list[bool], data: st.DataObject) -> None:
    """Each once, in reverse; one that is refused stops it, and what is left is for a person."""
    states: States = [DONE if one else REFUSED for one in done]
    reversible = [True] * len(done)
    refused = data.draw(st.none() | st.integers(0, len(done) - 1))
    order, undone = _undo_all(reversible, states, refused)
    expected = [index for index in reversed(range(len(done))) if done[index]]
    stopped = refused in expected
    assert order == [index for index in expected if not stopped or refused is None or index >= refused]
    assert after_undo(reversible, states, undone) is (Event.UNDO_FAILED if stopped else Event.UNDO_DONE)


@given(PLANS)
def test_every_effect_that_happened_is_in_exactly_one_bucket(plan: Plan) -> None:
    """Done, late and undecided effects have one and no other has; compensated is only what is undone."""
    reversible, states, undone = (list(column) for column in zip(*plan, strict=True))
    found = buckets(reversible, states, undone)
    happened = {DONE, EffectState.LATE, UNKNOWN, EffectState.IN_FLIGHT}
    assert set(found) == {index for index, state in enumerate(states) if state in happened}
    for index, bucket in found.items():
        assert (bucket is Bucket.IRREVERSIBLE) == (states[index] in (DONE, EffectState.LATE) and not reversible[index])
        if bucket is Bucket.COMPENSATED:
            assert (reversible[index], undone[index]) == (True, DONE)
        if bucket is Bucket.COMPENSATION_FAILED:
            assert undone[index] in (REFUSED, EffectState.FENCED)


@given(PLANS)
def test_it_is_clean_only_if_nothing_is_left(plan: Plan) -> None:
    """Compensated means: nothing failed, orphaned or unresolved. Otherwise it goes on, or a person is called."""
    reversible, states, undone = (list(column) for column in zip(*plan, strict=True))
    event = after_undo(reversible, states, undone)
    left = set(buckets(reversible, states, undone).values()) - {Bucket.COMPENSATED}
    if event is Event.UNDO_DONE:
        assert not left
    if event is None:
        undecided = {UNKNOWN, EffectState.IN_FLIGHT} & set(undone)
        assert undecided or next_undo(reversible, states, undone) is not None
    else:
        assert (State.COMPENSATING, event) in TRANSITIONS
        assert (event is Event.UNDO_FAILED) == bool(left)


@given(PLANS)
def test_the_next_undo_is_the_last_one_done(plan: Plan) -> None:
    """What was done later is undone already, and an undo that is open, refused or fenced is not passed over."""
    reversible, states, undone = (list(column) for column in zip(*plan, strict=True))
    index = next_undo(reversible, states, undone)
    if index is not None:
        assert (states[index], reversible[index]) == (DONE, True)
        assert undone[index] in (None, INTENDED)
        later = range(index + 1, len(plan))
        assert all(undone[one] is DONE for one in later if states[one] is DONE and reversible[one])


STEPS = st.sampled_from([DONE, REFUSED, UNKNOWN, INTENDED])


@given(st.lists(st.booleans(), min_size=1, max_size=5), st.lists(STEPS, max_size=60))
def test_a_saga_only_goes_forward_after_its_pivot(reversible: list[bool], answers: list[EffectState]) -> None:
    """Whatever a provider answers, step by step: undone is only what had no pivot, and past it nothing ever is."""
    states: States = [None] * len(reversible)
    event = None
    for answer in answers:
        event = decide(reversible, states)
        if event is not None:
            break
        index = next(one for one, state in enumerate(states) if state is not DONE)
        if (states[index] or INTENDED, EffectState.IN_FLIGHT) in EFFECT_TRANSITIONS:
            states[index] = EffectState.IN_FLIGHT
        states[index] = answer
    pivot = any(state is DONE and not can_undo for can_undo, state in zip(reversible, states, strict=True))
    if event is Event.UNDO_NEEDED:
        assert not pivot
    if pivot:
        assert event in (None, Event.EFFECTS_DONE, Event.GAVE_UP)
    if event is Event.EFFECT_REFUSED:
        assert DONE not in states


@pytest.mark.parametrize(
    "event", [Event.POLICY_REFUSED, Event.VALIDATION_REFUSED, Event.DENIED, Event.APPROVAL_EXPIRED]
)
def test_a_refusal_of_a_later_round_forgets_no_effect(event: Event) -> None:
    """Nothing stands: it ends. What can be undone is undone. Past the pivot, or in doubt, a person decides."""
    assert after_refusal(event, Standing.NOTHING) is event
    assert after_refusal(event, Standing.REVERSIBLE) is Event.UNDO_NEEDED
    assert after_refusal(event, Standing.IRREVERSIBLE) is Event.GAVE_UP
    assert after_refusal(event, Standing.UNCERTAIN) is Event.GAVE_UP


def test_in_shadow_mode_nothing_is_undone() -> None:
    """Shadow mode begins nothing, so what stands is shown to a person."""
    assert after_refusal(Event.SHADOW_RECORDED, Standing.NOTHING) is Event.SHADOW_RECORDED
    assert after_refusal(Event.SHADOW_RECORDED, Standing.REVERSIBLE) is Event.GAVE_UP
