"""How long an event that its receiver did not take waits for the next attempt, and when it is given up."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from policies.retries import backoff

BASE: Final = timedelta(seconds=5)
CAP: Final = timedelta(hours=1)
"""A receiver that comes back after a long outage waits at most this long for what it missed."""

MOST_ATTEMPTS: Final = 48
"""Attempts that a receiver may leave unanswered or fail: a day and a half at most, and nothing of it is lost."""

MOST_REFUSALS: Final = 8
"""Attempts after which a refusal of this one event is believed: ten minutes, in which a receiver may be deployed."""


def wait_after(attempts: int, *, refused: bool, retry_after: float | None, uniform: float) -> timedelta | None:
    """How long to wait after this many attempts (one or more) that did not work; None: give the event up.

    Args:
        refused: the receiver is well and does not want this very event.
        retry_after: seconds that the receiver asked for: a lower bound, itself bounded by `CAP`.
        uniform: a random number from 0 up to 1.
    """
    if attempts >= (MOST_REFUSALS if refused else MOST_ATTEMPTS):
        return None
    least = min(timedelta(seconds=retry_after or 0.0), CAP)
    return least + backoff(attempts, base=BASE, cap=CAP, uniform=uniform)
