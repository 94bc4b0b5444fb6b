"""How long an event waits that its receiver did not take."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from policies.publishing import BASE, CAP, MOST_ATTEMPTS, MOST_REFUSALS, wait_after

ALMOST_ONE = 1 - 2**-53


def test_attempts_are_bounded_and_a_refusal_is_believed_sooner() -> None:
    """The last attempt of either kind gives the event up, so that its aggregate goes on."""
    for refused, most in ((True, MOST_REFUSALS), (False, MOST_ATTEMPTS)):
        waits = [wait_after(n, refused=refused, retry_after=None, uniform=ALMOST_ONE) for n in range(1, most + 2)]
        assert None not in waits[: most - 1]
        assert waits[most - 1 :] == [None, None]


def test_a_receiver_may_be_away_for_a_day() -> None:
    """An outage of the receiver says nothing about the events it misses."""
    waits = [wait_after(n, refused=False, retry_after=None, uniform=0.7) for n in range(1, MOST_ATTEMPTS)]
    assert sum((wait for wait in waits if wait), timedelta(0)) > timedelta(days=1)


@given(
    attempts=st.integers(1, MOST_ATTEMPTS - 1),
    retry_after=st.none() | st.floats(0, 1e9),
    uniform=st.floats(0, 1, exclude_max=True),
)
def test_a_wait_is_jittered_bounded_and_not_shorter_than_asked(
    attempts: int, retry_after: float | None, uniform: float
) -> None:
    """A receiver may ask for patience, but not for so much that its events are as good as lost."""
    wait = wait_after(attempts, refused=False, retry_after=retry_after, uniform=uniform)
    assert wait is not None
    least = min(timedelta(seconds=retry_after or 0.0), CAP)
    assert least <= wait <= least + min(CAP, timedelta(seconds=BASE.total_seconds() * 2.0 ** min(attempts, 20) / 2))
