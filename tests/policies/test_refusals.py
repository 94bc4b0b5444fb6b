"""Why an effect was not started, and what happens to its request then."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from policies.effects import EffectState
from policies.refusals import MOVED_ON, WAITS, Refusal, event_after
from policies.states import TRANSITIONS, Event, State

FUNCTIONS = Path(__file__).resolve().parents[2] / "resources" / "store" / "functions"


@pytest.mark.parametrize("begun", [False, True])
@pytest.mark.parametrize("refusal", Refusal)
def test_every_refusal_leads_where_it_may(refusal: Refusal, begun: bool) -> None:
    """The event leaves `executing`; once an effect was begun nothing is asked anew: it waits, or a person looks."""
    event = event_after(refusal, effects_begun=begun)
    if refusal in MOVED_ON | WAITS:
        assert event is None
    else:
        assert event is not None
        assert (State.EXECUTING, event) in TRANSITIONS
        assert (event is Event.GAVE_UP) == begun


@pytest.mark.parametrize(
    ("refusal", "event"),
    [
        (Refusal.APPROVAL_EXPIRED, Event.APPROVAL_EXPIRED),
        (Refusal.TOO_FEW_VOTES, Event.APPROVAL_STALE),
        (Refusal.NO_APPROVAL, Event.APPROVAL_STALE),
        (Refusal.NOT_RELEASED, Event.APPROVAL_STALE),
        (Refusal.HASH_MISMATCH, Event.REVIEW_NEEDED),
        (Refusal.PARAMETERS_CHANGED, Event.REVIEW_NEEDED),
        (Refusal.INITIATOR_DISABLED, Event.REVIEW_NEEDED),
    ],
)
def test_before_any_effect(refusal: Refusal, event: Event) -> None:
    """Votes that no longer count are asked for again; what only a person can tell goes to one."""
    assert event_after(refusal, effects_begun=False) is event


def test_nothing_that_passes_by_itself_needs_a_person() -> None:
    """A pause, a breaker, a limit and a cancellation only wait; a request of somebody else's is left alone."""
    assert {Refusal.PAUSED, Refusal.BREAKER_OPEN, Refusal.PROVIDER_BUSY, Refusal.CANCEL_REQUESTED} <= WAITS
    assert not WAITS & MOVED_ON


def test_the_database_gives_no_other_answer() -> None:
    """Every refusal written in `start_effects` is known here, and every one known here is written there."""
    effects, providers = ((FUNCTIONS / f"{name}.sql").read_text() for name in ("effects", "providers"))
    start = effects[: effects.index("$$;")]
    assert "'effect_' || e.state" in start
    written = {f"effect_{state}" for state in EffectState if state is not EffectState.INTENDED}
    written |= set(re.findall(r"then '([a-z_]*[a-z])'", start)) | set(
        re.findall(r"'([a-z]+_(?:open|busy))'", providers)
    )
    assert written == {refusal.value for refusal in Refusal}
