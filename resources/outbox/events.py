"""Taking events from the outbox in the order of each aggregate, and saying what became of them."""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import sqlalchemy as sa

from resources.store.engine import transaction
from resources.store.moves import plain_text
from resources.store.queries import query


@dataclass(frozen=True, slots=True)
class OutboxEvent:
    """One event as it is stored; `attempts` counts the one that this claim is for."""

    id: uuid.UUID
    aggregatetype: str
    aggregateid: str
    sequence: int
    type: str
    payload: str
    """JSON text, as the database has it."""
    created_at: datetime
    attempts: int

    @property
    def name(self) -> str:
        """The event in a few words, for people."""
        return f"{self.type} of {self.aggregatetype} {self.aggregateid} (event {self.id})"


@dataclass(frozen=True, slots=True)
class Claim:
    """Events that this token holds, at most one of each aggregate.

    `sure_until` is on this process's monotonic clock, counted from before the database was asked, so it is never later
    than the claim's real end.
    """

    token: uuid.UUID
    sure_until: float
    events: list[OutboxEvent] = field(default_factory=list)

    def seconds_left(self) -> float:
        """Seconds for which the events are certainly ours."""
        return self.sure_until - time.monotonic()


def claim_events(engine: sa.Engine, *, limit: int, length: timedelta) -> Claim:
    """Hold up to `limit` events for `length`, the oldest first; in a transaction that has ended when this returns."""
    token = uuid.uuid4()
    asked_at = time.monotonic()
    with transaction(engine) as connection:
        rows = connection.execute(query("claim_events"), {"token": token, "limit": limit, "length": length}).all()
    events = sorted((OutboxEvent(*row) for row in rows), key=lambda event: (event.created_at, event.id))
    return Claim(token, asked_at + length.total_seconds(), events)


def mark_published(connection: sa.Connection, claim: Claim, events: Sequence[OutboxEvent]) -> int:
    """Note that the receiver took these; returns how many were still ours, the others will be sent once more."""
    marked = connection.scalars(
        sa.text("select mark_published(:token, cast(:ids as uuid[]))"),
        {"token": claim.token, "ids": [event.id for event in events]},
    )
    return len(marked.all())


@dataclass(frozen=True, slots=True)
class Wait:
    """An event to be claimed again after `wait`; one that was not `sent` has not used up the attempt."""

    event: OutboxEvent
    wait: timedelta
    sent: bool


def give_back(connection: sa.Connection, claim: Claim, waits: Sequence[Wait]) -> None:
    """Let others claim these after their waits."""
    connection.execute(
        query("give_back_events"),
        {
            "token": claim.token,
            "ids": [wait.event.id for wait in waits],
            "waits": [wait.wait for wait in waits],
            "sent": [wait.sent for wait in waits],
        },
    )


def park(connection: sa.Connection, claim: Claim, given_up: Sequence[tuple[OutboxEvent, str]]) -> list[uuid.UUID]:
    """Skip events for good, each with its reason in the ledger, so that their aggregates go on; returns their ids."""
    parked = connection.scalars(
        sa.text("select park_events(:token, cast(:ids as uuid[]), cast(:reasons as text[]))"),
        {
            "token": claim.token,
            "ids": [event.id for event, _ in given_up],
            "reasons": [plain_text(reason) for _, reason in given_up],
        },
    )
    return list(parked)
