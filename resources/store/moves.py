"""Moving requests on: the pure table of transitions decides the target, the database refuses what it forbids."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

import sqlalchemy as sa

from policies.states import TERMINAL, Event, State, next_state
from resources.store.queries import query

MAX_REASON = 500
"""Length of `requests.reason`; the whole story is in the ledger."""


WAITING = "; waits: "
"""Stands between why a request is being undone and what that waits for (`sql/postpone_requests.sql`)."""


def plain_text(text: str, limit: int = MAX_REASON) -> str:
    """`text` as a column for people may hold it: no NUL or lone surrogate (Postgres refuses them), bounded."""
    return text.encode("utf-8", "backslashreplace").decode().replace("\x00", "\\x00")[:limit]


@dataclass(frozen=True, slots=True)
class Move:
    """One request's next transition, decided on the state it was seen in."""

    id: uuid.UUID
    seen: State
    event: Event
    reason: str | None = None
    new_round: bool = False
    revisions: int = 0
    """Revisions used up by outputs that could not stand."""
    rechecked: bool = False
    """The decision itself evaluated policy and preconditions, so effects may start for the next 30 s."""
    keep_lease: bool = False

    @property
    def to(self) -> State:
        """The state this move leads to."""
        return next_state(self.seen, self.event)


def advance(connection: sa.Connection, moves: Sequence[Move], token: uuid.UUID | None = None) -> set[uuid.UUID]:
    """Make the moves whose request still stands as it was seen, under lease `token` (None: leased by nobody).

    Returns the ids that moved. The others were lost to another worker or a person: write nothing that depends on them.
    """
    if not moves:
        return set()
    rows = connection.execute(
        query("advance_requests"),
        {
            "ids": [move.id for move in moves],
            "from_states": [move.seen.value for move in moves],
            "events": [move.event.value for move in moves],
            "to_states": [move.to.value for move in moves],
            "reasons": [None if move.reason is None else plain_text(move.reason) for move in moves],
            "rounds": [int(move.new_round) for move in moves],
            "revisions": [move.revisions for move in moves],
            "rechecked": [move.rechecked for move in moves],
            "keep_leases": [move.keep_lease for move in moves],
            "terminal": [move.to in TERMINAL for move in moves],
            "token": token,
        },
    )
    return set(rows.scalars().all())


RETRY_FOR = timedelta(hours=24)
"""How long after its first failed attempt a step may still be tried again."""


@dataclass(frozen=True, slots=True)
class Postponement:
    """Wait `delay` before the next try; `attempt` says whether this one counts, `bounded` whether the deadline does."""

    id: uuid.UUID
    delay: timedelta
    reason: str
    attempt: bool = True
    bounded: bool = False


def postpone(connection: sa.Connection, waits: Sequence[Postponement], token: uuid.UUID | None) -> set[uuid.UUID]:
    """Give requests back until their next try is due; returns the ids that were still ours and may wait so long.

    Without a `token` they are leased by nobody, and the caller holds their rows locked as it read them.
    """
    if not waits:
        return set()
    rows = connection.execute(
        query("postpone_requests"),
        {
            "ids": [wait.id for wait in waits],
            "attempts": [int(wait.attempt) for wait in waits],
            "delays": [wait.delay for wait in waits],
            "reasons": [plain_text(wait.reason) for wait in waits],
            "bounded": [wait.bounded for wait in waits],
            "retry_for": RETRY_FOR,
            "token": token,
        },
    )
    return set(rows.scalars().all())
