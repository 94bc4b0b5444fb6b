"""Tries are bounded, whatever they come to."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.attempts import MAX_ATTEMPTS, after_failure

CALLS = ("not executed", "no answer")
LOOK_UPS = ("failed", "absent", "not yet")


def played(calls: Iterable[str], look_ups: Iterable[str]) -> tuple[int, int, int | None]:
    """Calls sent, look-ups that failed, and attempts used up, until the steps leave it to a person or fate runs out.

    The steps' own rules: a call that was not executed is tried again, one without an answer is looked up; found absent
    it is sent again unless that would be one more than there may be; a look-up that failed is a failed try.
    """
    fates, answers = iter(calls), iter(look_ups)
    used: int | None = 0
    sent = failed = 0
    for fate in fates:
        assert used is not None
        sent += 1
        used = after_failure(used, uncertain=fate == "no answer")
        if used is None:
            break
        if fate == "no answer":
            for answer in answers:
                if answer == "not yet":
                    used = after_failure(used, tried=False)
                elif answer == "failed":
                    failed += 1
                    used = after_failure(used)
                else:
                    used = None if after_failure(used) is None else used
                if used is None or answer == "absent":
                    break
            if used is None:
                break
    return sent, failed, used


@given(
    st.lists(st.sampled_from(CALLS), min_size=3 * MAX_ATTEMPTS),
    st.lists(st.sampled_from(LOOK_UPS), min_size=20 * MAX_ATTEMPTS, max_size=40 * MAX_ATTEMPTS),
)
def test_every_series_of_failures_ends_in_front_of_a_person(calls: list[str], look_ups: list[str]) -> None:
    """However calls and look-ups fail, a request is sent at most eight times, then somebody decides."""
    sent, failed, used = played(calls, look_ups)
    assert used is None
    assert sent + failed <= MAX_ATTEMPTS + 1  # the last call's answer is still looked up


@given(st.integers(0, MAX_ATTEMPTS - 1), st.booleans())
def test_what_was_not_tried_uses_nothing_up(used: int, uncertain: bool) -> None:
    """A pause or an open breaker brings nobody nearer to the last attempt."""
    assert after_failure(used, tried=False, uncertain=uncertain) == used


@pytest.mark.parametrize("uncertain", [True, False])
def test_what_may_have_happened_is_looked_up_before_a_person_is_asked(uncertain: bool) -> None:
    """Only the last attempt makes the difference."""
    assert after_failure(MAX_ATTEMPTS - 2, uncertain=uncertain) == MAX_ATTEMPTS - 1
    assert after_failure(MAX_ATTEMPTS - 1, uncertain=uncertain) == (MAX_ATTEMPTS - 1 if uncertain else None)
    assert after_failure(MAX_ATTEMPTS, uncertain=uncertain) is None
