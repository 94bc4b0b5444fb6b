"""The inbox of somebody who is signed in: what waits, what it would do, and whether they may decide on it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from resources.store.engine import Duty, engine_for, transaction
from resources.store.queries import query

MAX_LINES: Final = 200
"""Lines of one page; what expires first is on it."""

LONGEST_DOCUMENT: Final = 65_536
"""Bytes of a review document that is read for the list; a longer one is read when it is opened."""


@dataclass(frozen=True, slots=True)
class InboxLine:
    """One approval request that waits. `obstacle` says why this person may not vote on it; None: they may."""

    approval_id: UUID
    request_id: UUID
    workflow: str
    operation_id: str
    tier: str
    votes_for: int
    quorum: int
    opened_at: datetime
    expires_at: datetime
    obstacle: str | None
    document: bytes | None = field(repr=False)


def read_inbox(
    database_url: str,
    session_secret: str,
    *,
    workflow: str | None = None,
    tier: str | None = None,
    age: timedelta = timedelta(0),
) -> list[InboxLine]:
    """What waits for at least `age` and the holder of the session may see, at most MAX_LINES."""
    arguments = {
        "session": session_secret,
        "workflow": workflow,
        "tier": tier,
        "age": age,
        "longest": LONGEST_DOCUMENT,
        "limit": MAX_LINES,
    }
    with transaction(engine_for(Duty.REVIEWER, database_url)) as connection:
        return [InboxLine(*row) for row in connection.execute(query("desk_inbox"), arguments)]
