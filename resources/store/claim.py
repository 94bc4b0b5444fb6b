"""Leases: take work, keep it, give it back. Every later write of a worker carries the lease's token."""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import sqlalchemy as sa

from policies.states import State
from resources.failpoints import Failpoint, reach
from resources.store.contention import again_when_contended
from resources.store.engine import transaction
from resources.store.queries import query

FIRST = uuid.UUID(int=0)
"""Sorts before every request id: where a keyset walk begins."""


@dataclass(frozen=True, slots=True)
class ClaimedRequest:
    """A request this lease holds, as it was when claimed."""

    id: uuid.UUID
    workflow_version: str
    revision: int
    round: int
    payload: bytes
    attempts: int
    lone_crash_count: int
    cancel_requested: bool
    rechecked: bool


@dataclass(slots=True)
class Lease:
    """One token over a chunk of requests.

    `sure_until` is on this process's monotonic clock, counted from before the database was asked, so it is never later
    than the lease's real end.
    """

    token: uuid.UUID
    length: timedelta
    sure_until: float
    requests: list[ClaimedRequest] = field(default_factory=list)
    held: set[uuid.UUID] = field(init=False)
    """Requests not known to be lost."""

    def __post_init__(self) -> None:
        self.held = {request.id for request in self.requests}

    @property
    def ids(self) -> list[uuid.UUID]:
        """The requests it was taken for."""
        return [request.id for request in self.requests]

    def seconds_left(self) -> float:
        """Seconds for which the lease is certainly ours."""
        return self.sure_until - time.monotonic()


@again_when_contended
def claim(
    engine: sa.Engine,
    *,
    workflow: str,
    batch: str,
    state: State,
    opened_at: datetime,
    after: uuid.UUID,
    limit: int,
    length: timedelta,
    suspect: bool = False,
    unknown: bool = False,
    restored: bool = False,
) -> Lease:
    """Lease up to `limit` due requests in `state`, in the order of their ids, after id `after`.

    Args:
        suspect: take one request that a worker died with, alone, instead of a chunk of healthy ones.
        unknown: take requests that have an effect of unknown outcome instead of those that have none.
        restored: take requests that are not cleared since the store was restored, and no others.
    """
    token = uuid.uuid4()
    asked_at = time.monotonic()
    with transaction(engine) as connection:
        rows = connection.execute(
            query("claim_requests"),
            {
                "workflow": workflow,
                "batch": batch,
                "state": state.value,
                "opened_at": opened_at,
                "after": after,
                "limit": 1 if suspect else limit,
                "lease": length,
                "token": token,
                "suspect": suspect,
                "unknown": unknown,
                "restored": restored,
            },
        ).all()
        if rows:
            reach(Failpoint.CLAIMING)
    if rows:
        reach(Failpoint.CLAIMED)
    requests = sorted((ClaimedRequest(*row) for row in rows), key=lambda request: request.id)
    return Lease(token, length, asked_at + length.total_seconds(), requests)


@again_when_contended
def renew(engine: sa.Engine, lease: Lease) -> set[uuid.UUID]:
    """Extend the lease by its length and return the ids that are still ours."""
    asked_at = time.monotonic()
    with transaction(engine) as connection:
        arguments = {"ids": lease.ids, "token": lease.token, "lease": lease.length}
        kept = set(connection.scalars(query("renew_lease"), arguments).all())
    lease.held &= kept  # first: a thread about to send must not see the new end for a request that is lost
    lease.sure_until = asked_at + lease.length.total_seconds()
    return kept


def release(connection: sa.Connection, lease: Lease, ids: list[uuid.UUID]) -> None:
    """Give requests back that this step is done with for now."""
    connection.execute(query("release_lease"), {"ids": ids, "token": lease.token})
