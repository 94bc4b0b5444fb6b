"""Every pair of state and event, allowed and forbidden."""

from __future__ import annotations

from itertools import product

import pytest

from policies.errors import UnknownTransition
from policies.states import OPEN, PARKED, TERMINAL, TRANSITIONS, Event, Proof, State, next_state

ALLOWED = """
received             proposal_recorded     proposal_ready
received             abstained             needs_review
received             review_needed         needs_review
received             gave_up               dead_lettered
received             cancelled             cancelled
received             undo_needed           compensating
proposal_ready       validation_refused    rejected
proposal_ready       review_needed         needs_review
proposal_ready       policy_refused        rejected
proposal_ready       approval_required     awaiting_approval
proposal_ready       auto_released         executing
proposal_ready       shadow_recorded       completed
proposal_ready       gave_up               dead_lettered
proposal_ready       cancelled             cancelled
proposal_ready       undo_needed           compensating
awaiting_approval    approved              executing
awaiting_approval    denied                rejected
awaiting_approval    approval_expired      expired
awaiting_approval    approval_stale        proposal_ready
awaiting_approval    edited                proposal_ready
awaiting_approval    review_needed         needs_review
awaiting_approval    gave_up               dead_lettered
awaiting_approval    cancelled             cancelled
awaiting_approval    undo_needed           compensating
executing            effects_done          completed
executing            effect_refused        failed
executing            undo_needed           compensating
executing            approval_expired      expired
executing            approval_stale        proposal_ready
executing            policy_refused        rejected
executing            review_needed         needs_review
executing            gave_up               dead_lettered
executing            cancelled             cancelled
compensating         undo_done             compensated
compensating         undo_failed           compensation_failed
needs_review         input_supplied        received
needs_review         discarded             failed
needs_review         cancelled             cancelled
needs_review         undo_needed           compensating
dead_lettered        redriven              received
dead_lettered        discarded             failed
dead_lettered        cancelled             cancelled
dead_lettered        undo_needed           compensating
dead_lettered        resolved_done         completed
dead_lettered        resolved_failed       failed
compensation_failed  resolved_compensated  compensated
compensation_failed  resolved_failed       failed
"""
EXPECTED = {
    (State(state), Event(event)): State(to) for state, event, to in map(str.split, ALLOWED.strip().splitlines())
}
PAIRS = list(product(State, Event))


@pytest.mark.parametrize(("state", "event"), PAIRS, ids=lambda value: value.value)
def test_every_pair_of_state_and_event(state: State, event: Event) -> None:
    """A pair either leads to the one state the table says, or raises."""
    if (state, event) in EXPECTED:
        assert next_state(state, event) is EXPECTED[state, event]
        assert next_state(state.value, event.value) is EXPECTED[state, event]
    else:
        with pytest.raises(UnknownTransition, match=state.value):
            next_state(state, event)


@pytest.mark.parametrize(("state", "event"), [("lost", "approved"), ("executing", "wished"), ("", "")])
def test_unknown_names_raise(state: str, event: str) -> None:
    """A state or event that the enums do not have raises instead of being ignored."""
    with pytest.raises(UnknownTransition):
        next_state(state, event)


def test_nothing_leaves_a_terminal_state() -> None:
    """A terminal state never changes."""
    assert not [state for state, _ in TRANSITIONS if state in TERMINAL]


def test_only_people_leave_a_parked_state() -> None:
    """Whatever leaves a parked state names who did it."""
    parked = [step for (state, _), step in TRANSITIONS.items() if state in PARKED]
    assert parked
    assert all(Proof.ACTOR in step.requires for step in parked)


def test_every_state_has_one_kind() -> None:
    """Terminal, parked and open states part the whole."""
    assert sorted([*TERMINAL, *PARKED, *OPEN]) == sorted(State)


def test_every_transition_proves_something() -> None:
    """No transition goes without the evidence that its audit event carries."""
    assert all(step.requires for step in TRANSITIONS.values())


def test_every_state_is_reached_and_every_event_used() -> None:
    """The table has no state without a way in and no event without a use."""
    assert {step.to for step in TRANSITIONS.values()} == set(State)
    assert {event for _, event in TRANSITIONS} == set(Event)
