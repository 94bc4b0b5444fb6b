"""What becomes of requests whose effect the database would not start."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import sqlalchemy as sa

from ops.batch import Batch, Counts
from ops.executing import Execution
from ops.parking import PAUSE_WAIT, park
from policies.refusals import NOT_STARTED, WAITS, Refusal, event_after
from policies.states import Event, State
from resources.store.claim import Lease
from resources.store.ledger import LedgerEvent, append
from resources.store.moves import Move, Postponement, advance, postpone
from resources.store.stages import release_claims

RefusedStart = tuple[Execution, Refusal, timedelta]
"""Whose start was refused, why, and how long that takes to pass where the database can say."""


def waiting(refused: Sequence[RefusedStart]) -> list[Postponement]:
    """The waits of those whose obstacle passes by itself; no attempt is used up."""
    return [
        Postponement(one.id, _wait_for(refusal, wait), f"{NOT_STARTED}{refusal}", attempt=False)
        for one, refusal, wait in refused
        if refusal in WAITS
    ]


def _wait_for(refusal: Refusal, wait: timedelta) -> timedelta:
    if refusal is Refusal.CANCEL_REQUESTED:
        return timedelta(0)  # what was done is undone at once
    if refusal is Refusal.NOT_RECHECKED:
        return timedelta(0)  # it became too old while others of its chunk were sent; the next pass makes it again
    return wait or PAUSE_WAIT


def refuse(connection: sa.Connection, batch: Batch, lease: Lease, refused: Sequence[RefusedStart]) -> Counts:
    """Send each refused request where `policies.refusals` says: back, to a person, or to wait."""
    if not refused:
        return Counts()
    counts = Counts(f"not_started_{refusal}" for _, refusal, _ in refused)
    postpone(connection, waiting(refused), lease.token)
    moves, given_up = [], []
    for one, refusal, _ in refused:
        event = event_after(refusal, effects_begun=one.begun)
        if event is Event.GAVE_UP:
            given_up.append((one.id, f"not started: {refusal}"))
        elif event is not None:
            stale = event is Event.APPROVAL_STALE
            moves.append(Move(one.id, State.EXECUTING, event, f"not started: {refusal}", new_round=stale))
    moved = advance(connection, moves, lease.token)
    release_claims(connection, list(moved))
    append(
        connection,
        [
            LedgerEvent(move.id, "request.not_started", {"event": move.event, "state": move.to, "reason": move.reason})
            for move in moves
            if move.id in moved
        ],
        batch.actor,
    )
    return counts + park(connection, batch, lease.token, "execute", State.EXECUTING, given_up)
