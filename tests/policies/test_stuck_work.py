"""When work counts as stuck, and that whoever is on call is told something to do for every reason there is."""

from __future__ import annotations

from datetime import timedelta

import pytest

from policies.refusals import NOT_STARTED, WAITS, Refusal
from policies.stuck_work import Stuck, remedy, unknown_for, untouched_for

MINUTE = timedelta(minutes=1)
PASSING = {Refusal.NOT_RECHECKED, Refusal.CANCEL_REQUESTED}
"""They wait for nothing: the next pass goes on."""


@pytest.mark.parametrize("refusal", sorted(WAITS - PASSING))
def test_every_refusal_that_may_last_has_a_remedy_of_its_own(refusal: Refusal) -> None:
    """A new one must not fall back on the general advice unnoticed."""
    assert remedy(Stuck.HELD, NOT_STARTED + refusal) != remedy(Stuck.HELD, "a record look-up failed")


@pytest.mark.parametrize(("lease", "patience"), [(1, 15), (1.5, 15), (2, 20), (60, 600)])
def test_due_work_may_lie_for_ten_leases_and_at_least_a_quarter_of_an_hour(lease: float, patience: float) -> None:
    """Sensors let a batch rest for up to ten minutes, so less would call people for nothing."""
    assert untouched_for(lease * MINUTE) == patience * MINUTE


def test_look_ups_are_given_an_hour_from_when_an_effect_shows() -> None:
    """The slowest provider of the workflow counts."""
    assert unknown_for([]) == 60 * MINUTE
    assert unknown_for([0 * MINUTE, 90 * MINUTE, 5 * MINUTE]) == 150 * MINUTE
