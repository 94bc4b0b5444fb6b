"""Bounded tries: wait for the next one, or park the request where a person finds it."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

import sqlalchemy as sa

from ops.batch import Batch, Counts
from policies.attempts import MAX_ATTEMPTS, after_failure
from policies.retries import backoff
from policies.states import Event, State, next_state
from resources.store.claim import Lease
from resources.store.dead_letters import open_dead_letters
from resources.store.ledger import LedgerEvent, append
from resources.store.moves import RETRY_FOR, Move, Postponement, advance, postpone

NO_MORE = MAX_ATTEMPTS
"""Attempts of a request for which another try cannot help."""

MAX_LONE_CRASHES = 3
"""Workers that may die on one request, handled alone, before it is taken for the cause."""

BACKOFF_CAP = timedelta(minutes=20)


PAUSE_WAIT = timedelta(seconds=30)
"""How soon held-back work is looked at again; lifting a pause costs at most this."""


@dataclass(frozen=True, slots=True)
class Failed:
    """A try that did not work, and the least seconds until the next; `tried`, `uncertain`: see `policies.attempts`."""

    id: uuid.UUID
    attempts: int
    reason: str
    after: float = 0.0
    tried: bool = True
    uncertain: bool = False


def deadly(lease: Lease, crashes: int = MAX_LONE_CRASHES) -> list[tuple[uuid.UUID, str]]:
    """Requests on which so many workers died that had taken them alone, each with the reason to park it."""
    return [
        (request.id, f"{request.lone_crash_count} workers died on this request alone")
        for request in lease.requests
        if request.lone_crash_count >= crashes
    ]


def delay_of(batch: Batch, failed: Failed) -> timedelta:
    """How long a failed request waits: full jitter, on top of a provider's hint, which is a lower bound."""
    base = timedelta(seconds=batch.run.backoff_seconds)
    jitter = backoff(failed.attempts + 1, base=base, cap=BACKOFF_CAP, uniform=batch.uniform())
    return jitter + timedelta(seconds=failed.after)


def wait_or_give_up(
    connection: sa.Connection, batch: Batch, lease: Lease | None, step: str, seen: State, failures: Sequence[Failed]
) -> Counts:
    """Postpone each failed request by full jitter, or park it once its attempts are used up or its deadline is over.

    Without a lease, the caller holds the rows of the requests locked as it read them.
    """
    token = None if lease is None else lease.token
    counts = Counts()
    waits, spent = [], []
    for failed in failures:
        used = after_failure(failed.attempts, tried=failed.tried, uncertain=failed.uncertain)
        if used is None:
            last = "" if failed.attempts >= NO_MORE else f" (attempt {MAX_ATTEMPTS} of {MAX_ATTEMPTS})"
            spent.append((failed.id, failed.reason + last))
            continue
        bounded = failed.tried and not failed.uncertain  # the deadline, too, ends nothing that may have happened
        attempt = used > failed.attempts
        waits.append(Postponement(failed.id, delay_of(batch, failed), failed.reason, attempt, bounded))
    postponed = postpone(connection, waits, token)
    counts["postponed"] += len(postponed)
    spent += [(wait.id, _overdue(wait)) for wait in waits if wait.bounded and wait.id not in postponed]
    return counts + park(connection, batch, token, step, seen, spent)


def _overdue(wait: Postponement) -> str:
    hours, delay = RETRY_FOR.total_seconds() / 3600, wait.delay.total_seconds()
    return f"{wait.reason} (the next try, in {delay:.0f} s, would be more than {hours:g} h after the first that failed)"


def park(
    connection: sa.Connection,
    batch: Batch,
    token: uuid.UUID | None,
    step: str,
    seen: State,
    failures: Sequence[tuple[uuid.UUID, str]],
) -> Counts:
    """Park requests for a person, each with an open dead letter and its ledger event; an undo that failed says so."""
    if not failures:
        return Counts()
    event = Event.UNDO_FAILED if seen is State.COMPENSATING else Event.GAVE_UP
    state = next_state(seen, event)
    moves = [Move(request_id, seen, event, reason) for request_id, reason in failures]
    moved = advance(connection, moves, token)
    parked = [(request_id, reason) for request_id, reason in failures if request_id in moved]
    open_dead_letters(connection, step, parked)
    append(
        connection,
        [
            LedgerEvent(request_id, "request.parked", {"event": event, "step": step, "reason": reason, "state": state})
            for request_id, reason in parked
        ],
        batch.actor,
    )
    return Counts({state.value: len(parked)})


def send_to_review(
    connection: sa.Connection,
    batch: Batch,
    seen: State,
    unclear: Sequence[tuple[uuid.UUID, str]],
    token: uuid.UUID | None = None,
) -> Counts:
    """Park requests that only a person can go on with."""
    moved = advance(connection, [Move(one, seen, Event.REVIEW_NEEDED, reason) for one, reason in unclear], token)
    append(
        connection,
        [
            LedgerEvent(
                one,
                "request.review_needed",
                {"event": Event.REVIEW_NEEDED, "state": State.NEEDS_REVIEW, "reason": reason},
            )
            for one, reason in unclear
            if one in moved
        ],
        batch.actor,
    )
    return Counts({"needs_review": len(moved)})
