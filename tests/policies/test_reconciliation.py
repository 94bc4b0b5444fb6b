"""What it means that a provider does not show an effect."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.outcomes import Semantics
from policies.reconciliation import Verdict, after_absence

SECOND, HOUR, DAY = timedelta(seconds=1), timedelta(hours=1), timedelta(days=1)
DURATIONS = st.timedeltas(timedelta(0), timedelta(days=40))
SEMANTICS = st.builds(
    Semantics,
    honours_key=st.none() | DURATIONS,
    lookup=st.booleans(),
    visible_after=DURATIONS,
    shares_transaction=st.booleans(),
    timeout=st.timedeltas(SECOND, HOUR),
)


@pytest.mark.parametrize(
    ("semantics", "since_first", "since_last", "verdict"),
    [
        (Semantics(honours_key=DAY, lookup=True), HOUR, 5 * SECOND, Verdict.WAIT),  # a call may still be under way
        (Semantics(honours_key=DAY, lookup=True), HOUR, 10 * SECOND, Verdict.SEND_AGAIN),
        (Semantics(honours_key=DAY, lookup=True, visible_after=HOUR), HOUR, 59 * 60 * SECOND, Verdict.WAIT),
        (Semantics(honours_key=DAY, lookup=True, visible_after=HOUR), 2 * HOUR, 2 * HOUR, Verdict.SEND_AGAIN),
        (
            Semantics(honours_key=DAY),
            HOUR,
            HOUR,
            Verdict.SEND_AGAIN,
        ),  # no look-up, but the key is known to the provider
        (Semantics(honours_key=DAY), DAY, HOUR, Verdict.ASK_A_PERSON),  # the provider has forgotten the key
        (Semantics(honours_key=DAY), DAY - 10 * SECOND, HOUR, Verdict.ASK_A_PERSON),  # or will before it is asked
        (Semantics(lookup=True), HOUR, HOUR, Verdict.ASK_A_PERSON),
        (Semantics(), HOUR, HOUR, Verdict.ASK_A_PERSON),
        (Semantics(shares_transaction=True, lookup=True), 30 * DAY, HOUR, Verdict.SEND_AGAIN),
    ],
)
def test_stories(semantics: Semantics, since_first: timedelta, since_last: timedelta, verdict: Verdict) -> None:
    """Wait while it may still show, send again only where a repeat is harmless, otherwise ask a person."""
    assert after_absence(semantics, since_first=since_first, since_last=since_last).verdict is verdict


def test_it_says_how_long_to_wait() -> None:
    """Until the call's time-out and the provider's visibility delay are both over."""
    semantics = Semantics(honours_key=DAY, lookup=True, visible_after=HOUR)
    absence = after_absence(semantics, since_first=DAY, since_last=timedelta(0))
    assert absence.wait == HOUR + 10 * SECOND


@given(SEMANTICS, DURATIONS, DURATIONS)
def test_a_second_call_is_never_a_second_effect(semantics: Semantics, first: timedelta, last: timedelta) -> None:
    """It is made only past every delay, and only where the provider shares the transaction or still knows the key."""
    since_last, since_first = sorted((first, last))
    absence = after_absence(semantics, since_first=since_first, since_last=since_last)
    if absence.verdict is Verdict.SEND_AGAIN:
        assert since_last >= semantics.timeout
        assert not semantics.lookup or since_last >= semantics.timeout + semantics.visible_after
        remembers = semantics.honours_key is not None and since_first + semantics.timeout < semantics.honours_key
        assert semantics.shares_transaction or remembers
    assert (absence.wait > timedelta(0)) == (absence.verdict is Verdict.WAIT)


@given(SEMANTICS, DURATIONS)
def test_waiting_ends(semantics: Semantics, since_last: timedelta) -> None:
    """After the wait it says, the verdict is another one."""
    absence = after_absence(semantics, since_first=since_last, since_last=since_last)
    later = since_last + absence.wait
    assert after_absence(semantics, since_first=later, since_last=later).verdict is not Verdict.WAIT
