"""Waiting before trying again."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.retries import backoff, retry_after

BASE, CAP = timedelta(seconds=2), timedelta(minutes=5)
DATE = "Tue, 10 Mar 2026 12:00:00 GMT"


@given(st.integers(1, 10_000), st.floats(0, 1, exclude_max=True))
def test_backoff_stays_within_the_doubled_base_and_the_cap(attempt: int, uniform: float) -> None:
    """Any attempt waits from nothing up to the doubled base, never beyond the cap."""
    wait = backoff(attempt, base=BASE, cap=CAP, uniform=uniform)
    assert timedelta(0) <= wait <= min(CAP, BASE * 2 ** min(attempt - 1, 20))


@pytest.mark.parametrize(("attempt", "seconds"), [(1, 1), (2, 2), (3, 4), (20, 150)])
def test_backoff_doubles(attempt: int, seconds: int) -> None:
    """Half of the range doubles with each attempt until the cap."""
    assert backoff(attempt, base=BASE, cap=CAP, uniform=0.5) == timedelta(seconds=seconds)


@pytest.mark.parametrize(("attempt", "uniform"), [(0, 0.5), (1, 1.0), (1, -0.1), (1, float("nan"))])
def test_backoff_refuses_what_it_cannot_mean(attempt: int, uniform: float) -> None:
    """Attempts count from 1 and the share lies below 1."""
    with pytest.raises(ValueError, match="attempt counts from 1"):
        backoff(attempt, base=BASE, cap=CAP, uniform=uniform)


@pytest.mark.parametrize(
    ("header", "date", "wait"),
    [
        ("120", None, timedelta(seconds=120)),
        (" 0 ", DATE, timedelta(0)),
        ("Tue, 10 Mar 2026 12:00:30 GMT", DATE, timedelta(seconds=30)),
        ("Tuesday, 10-Mar-26 12:01:00 GMT", DATE, timedelta(seconds=60)),
        ("Tue Mar 10 12:02:00 2026", DATE, timedelta(seconds=120)),
        ("Sun Mar  1 12:00:00 2026", DATE, timedelta(0)),
        ("Tue, 10 Mar 2026 12:00:30 GMT", None, None),
        ("Tue, 10 Mar 2026 12:00:30 GMT", "yesterday", None),
        ("Tue, 31 Feb 2026 12:00:30 GMT", DATE, None),
        ("soon", DATE, None),
        ("", DATE, None),
        ("-5", DATE, None),
        ("1.5", DATE, None),
        ("٣", DATE, None),
        ("9" * 18, None, timedelta(days=365)),
        ("9" * 400, None, None),
        ("Tue, 10 Mar 2099 12:00:30 GMT", DATE, timedelta(days=365)),
    ],
)
def test_retry_after(header: str, date: str | None, wait: timedelta | None) -> None:
    """Seconds and the three forms of an HTTP date are read; a date counts from the response's own clock."""
    assert retry_after(header, date) == wait


@given(st.text(), st.none() | st.text())
def test_no_header_makes_it_raise(header: str, date: str | None) -> None:
    """Whatever a provider sends, the answer is a wait or None."""
    wait = retry_after(header, date)
    assert wait is None or wait >= timedelta(0)
