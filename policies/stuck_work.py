"""Work that ought to move and does not: when it counts as stuck, and what whoever is on call can do about it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from enum import StrEnum
from typing import Final

from policies.refusals import NOT_STARTED, Refusal


class Stuck(StrEnum):
    """Why open work does not move although it waits for no person and its time has come."""

    LEASE_OVERDUE = "lease_overdue"  # whoever held it is dead, and no run took it back
    UNTOUCHED = "untouched"  # no run took it up
    HELD = "held"  # runs put it off again and again, for a reason that uses up no attempt


HELD_FOR: Final = timedelta(hours=1)
"""What a reason may hold back before somebody should know. Bounded retries are over by then or become a case."""

_LEASES: Final = 10
_LEAST: Final = timedelta(minutes=15)


def untouched_for(lease: timedelta) -> timedelta:
    """How long due work may lie: several leases, and longer than sensors let a batch rest (10 minutes)."""
    return max(_LEAST, _LEASES * lease)


def unknown_for(visible_after: Iterable[timedelta]) -> timedelta:
    """How long look-ups may take to find out what became of an effect: an hour from when it shows everywhere."""
    return timedelta(hours=1) + max(visible_after, default=timedelta(0))


_NO_RUN = (
    "Are the sensors on and the daemon alive, and do runs of the job get to their end? Else a session may hold the rows"
    " (`idle in transaction` in pg_stat_activity): runs pass them by until it ends."
)
_OF_REFUSALS = {
    Refusal.PAUSED: "`failsafe pause list` says who paused it and why; `failsafe resume` lets it go on.",
    Refusal.BREAKER_OPEN: "The provider does not answer. The breaker tries it again by itself: see to the provider.",
    Refusal.PROVIDER_BUSY: "It waits for its turn: more comes in than the limits of the adapter let through.",
    Refusal.RETRY_BUDGET: "So many calls had to be repeated that further ones wait: see to the provider.",
    Refusal.RESTORED: "After a restore it is not looked up yet what it did: see to the provider's look-up.",
}
_OTHERWISE = "What it waits for goes by itself once that is mended; `failsafe show` tells its story."


def remedy(why: Stuck, reason: str) -> str:
    """What to do about it, in a sentence or two."""
    if why is not Stuck.HELD:
        return _NO_RUN
    refusal = reason.removeprefix(NOT_STARTED)
    return next((text for known, text in _OF_REFUSALS.items() if known == refusal), _OTHERWISE)
