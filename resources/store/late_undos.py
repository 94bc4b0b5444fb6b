"""Undoing what came late: an effect that happened after it was settled otherwise, and that a person wants undone."""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import sqlalchemy as sa

from resources.store.claim import Lease
from resources.store.contention import again_when_contended
from resources.store.engine import Duty, engine_for, transaction
from resources.store.moves import plain_text
from resources.store.operator import said
from resources.store.queries import query
from resources.store.votes import Session


def ask_undo(database_url: str, session: Session, key: str, reason: str) -> uuid.UUID:
    """Have a late effect undone by the next run; returns its request's id.

    Raises:
        NotPermitted: no operator.
        NotPossibleNow: the effect is not late, or nothing undoes it.
        RequestRefused: there is no such effect.
    """
    arguments = {"session": session.secret, "key": key, "reason": said("reason", reason)}
    with transaction(engine_for(Duty.OPERATOR, database_url)) as connection:
        asked: uuid.UUID = connection.execute(
            sa.text("select ask_undo(:session, :key, :reason)"), arguments
        ).scalar_one()
        return asked


@again_when_contended
def claim_late_undo(
    engine: sa.Engine, *, workflow: str, batch: str, length: timedelta
) -> tuple[Lease, uuid.UUID] | None:
    """Lease one request, ended or not, that has a late effect whose undo is due; None: there is none."""
    token, asked_at = uuid.uuid4(), time.monotonic()
    arguments = {"workflow": workflow, "batch": batch, "token": token, "lease": length}
    with transaction(engine) as connection:
        claimed = connection.scalar(query("claim_late_undo"), arguments)
    return None if claimed is None else (Lease(token, length, asked_at + length.total_seconds()), claimed)


def late_undos(connection: sa.Connection, token: uuid.UUID, request_id: uuid.UUID) -> Sequence[sa.Row[Any]]:
    """The late effects of a request that are to be undone, last first (columns of `sql/late_undos.sql`)."""
    return connection.execute(query("late_undos"), {"token": token, "request_id": request_id}).all()


def settle_late_undo(
    connection: sa.Connection,
    token: uuid.UUID,
    key: str,
    outcome: str,
    *,
    wait: timedelta = timedelta(0),
    why: str = "",
) -> None:
    """What became of one: `done`, `failed` or `wait` (tried again after `wait`), or `given_up` (with why)."""
    connection.execute(
        sa.text("select settle_late_undo(:token, :key, :outcome, :wait, :why)"),
        {"token": token, "key": key, "outcome": outcome, "wait": wait, "why": plain_text(why)},
    )
