"""What an unsuccessful look-up of an unknown effect means: wait, send again under the same key, ask a person."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from policies.actions import OnUnknown
from policies.outcomes import Semantics


class Verdict(StrEnum):
    """What to do about an effect whose provider does not show it."""

    WAIT = "wait"  # it may still appear
    SEND_AGAIN = "send_again"  # absent, and the provider would recognise the key if we were wrong
    ASK_A_PERSON = "ask_a_person"  # a second call could be a second effect
    ASSUME_DONE = "assume_done"  # likewise, but a notification that may be lost is not worth a person's time


@dataclass(frozen=True, slots=True)
class Absence:
    """The verdict, and for `wait` how long."""

    verdict: Verdict
    wait: timedelta = timedelta(0)


def after_absence(
    semantics: Semantics, *, since_first: timedelta, since_last: timedelta, on_unknown: OnUnknown = "ask"
) -> Absence:
    """Judge an effect that was not found (or cannot be looked up).

    Args:
        since_first: time since it was first sent; a provider's memory for keys is counted from there.
        since_last: time since it was last started. The lease it was started under is over, so no worker sends it any
            more; a call may be under way for as long as its time-out, and its effect may show only later.
        on_unknown: what the action type says about an effect that nobody can find out about.

    Absence counts only after time-out and visibility delay, and a second call is right only where the provider honours
    the key for longer than has passed, or shares the transaction.
    """
    settled = semantics.timeout + (semantics.visible_after if semantics.lookup else timedelta(0))
    if since_last < settled:
        return Absence(Verdict.WAIT, settled - since_last)
    if semantics.shares_transaction:
        return Absence(Verdict.SEND_AGAIN)
    if semantics.honours_key is not None and since_first + semantics.timeout < semantics.honours_key:
        return Absence(Verdict.SEND_AGAIN)
    return Absence(Verdict.ASSUME_DONE if on_unknown == "assume_done" else Verdict.ASK_A_PERSON)


def after_restore(
    semantics: Semantics, *, since_received: timedelta, since_restored: timedelta, on_unknown: OnUnknown = "ask"
) -> Absence:
    """Judge what a request may have done after the backup was taken, where it was not found or cannot be looked up.

    Args:
        since_received: time since the request came in; no key of it can be older.
        since_restored: time since the restore. No worker of before sends any more, and the rules of absence count from
            there.
        on_unknown: as for `after_absence`.

    Nobody knows that anything was sent at all. So what a look-up does not show when nothing can be under way any more
    was not done and may be sent, even where the provider honours no key.
    """
    absence = after_absence(semantics, since_first=since_received, since_last=since_restored, on_unknown=on_unknown)
    if semantics.lookup and absence.verdict is not Verdict.WAIT:
        return Absence(Verdict.SEND_AGAIN)
    return absence


def repeat_within(semantics: Semantics) -> timedelta | None:
    """How long after its first send a key may be sent again by a worker that cannot look first.

    None: whoever sends again has looked, and saw that it was not done.
    """
    if semantics.lookup or semantics.honours_key is None:
        return None
    return semantics.honours_key - semantics.timeout
