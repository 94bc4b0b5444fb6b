"""Events that were given up: which, why, and publishing them after all. By the operator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from resources.store.engine import Duty, engine_for, transaction
from resources.store.operator import said
from resources.store.queries import query
from resources.store.votes import Session


@dataclass(frozen=True, slots=True)
class ParkedEvent:
    """One event that nobody tries to publish any more. `sequence` is its place among those of its aggregate."""

    id: UUID
    aggregate: str
    sequence: int
    type: str
    attempts: int
    created_at: datetime
    parked_at: datetime
    reason: str | None


@dataclass(frozen=True, slots=True)
class Republished:
    """One event that was to be published after all. `obstacle`: why it is not; None: it is."""

    id: UUID
    obstacle: str | None


def parked_events(database_url: str, event_type: str | None = None) -> list[ParkedEvent]:
    """Events that were given up, the first first."""
    with transaction(engine_for(Duty.OPERATOR, database_url)) as connection:
        return [ParkedEvent(*row) for row in connection.execute(query("parked_events"), {"type": event_type})]


def republish(
    database_url: str, session: Session, ids: Sequence[UUID], reason: str, *, dry_run: bool
) -> list[Republished]:
    """Let the publisher try parked events anew, with all their attempts. Raises NotPermitted, NotAuthenticated."""
    arguments = {"session": session.secret, "ids": list(ids), "reason": said("reason", reason), "dry_run": dry_run}
    with transaction(engine_for(Duty.OPERATOR, database_url)) as connection:
        return [Republished(*row) for row in connection.execute(query("republish_events"), arguments)]
