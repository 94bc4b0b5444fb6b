"""Restores: what a request may have done after the backup was taken, and when its effects may start again."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from resources.store.claim import Lease
from resources.store.effects import Start
from resources.store.engine import Duty, engine_for, transaction
from resources.store.operator import said
from resources.store.queries import query
from resources.store.votes import Session


@dataclass(frozen=True, slots=True)
class RestoreStanding:
    """The epoch that the last restore began. `opened_at` is None until a run opens it; `opened_by`: None, by itself."""

    epoch: int
    opened_at: datetime | None
    opened_by: str | None
    reason: str | None
    waiting: int
    """Requests whose effects do not start before it was looked up what they did."""


def notice_restore(connection: sa.Connection) -> int:
    """Open an epoch if the store is on other ground than before; returns the epoch in force, 0 without any restore."""
    epoch: int = connection.execute(sa.text("select notice_restore()")).scalar_one()
    return epoch


def restore_standing(database_url: str) -> RestoreStanding | None:
    """How the clearing after the last restore stands; None where there was none."""
    with transaction(engine_for(Duty.AUDITOR, database_url)) as connection:
        row = connection.execute(sa.text("select * from restore_standing()")).one_or_none()
    return None if row is None else RestoreStanding(*row)


def declare_restored(database_url: str, session: Session, reason: str) -> int:
    """Say that the store was restored; returns the epoch that begins.

    Raises:
        NotPermitted: no operator.
        NotPossibleNow: somebody else just began one.
    """
    arguments = {"session": session.secret, "reason": said("reason", reason)}
    with transaction(engine_for(Duty.OPERATOR, database_url)) as connection:
        epoch: int = connection.execute(sa.text("select declare_restored(:session, :reason)"), arguments).scalar_one()
        return epoch


def restored_keys(connection: sa.Connection, lease: Lease, proposable: Sequence[str]) -> Sequence[sa.Row[Any]]:
    """Keys that the leased requests may have used before the restore (columns of `sql/restored_keys.sql`)."""
    arguments = {"ids": lease.ids, "token": lease.token, "proposable": list(proposable)}
    return connection.execute(query("restored_keys"), arguments).all()


def suspect_effects(connection: sa.Connection, token: uuid.UUID, suspects: Sequence[tuple[Start, str]]) -> None:
    """Write effects that may have been done, each with its provider, as unknown."""
    if suspects:
        connection.execute(
            query("suspect_effects"),
            {
                "token": token,
                "ids": [start.request_id for start, _ in suspects],
                "ordinals": [start.ordinal for start, _ in suspects],
                "kinds": [start.kind for start, _ in suspects],
                "providers": [provider for _, provider in suspects],
                "parameters_hashes": [start.parameters_hash for start, _ in suspects],
                "recoveries": [json.dumps(start.recovery) for start, _ in suspects],
            },
        )


def clear_requests(connection: sa.Connection, token: uuid.UUID, ids: Sequence[uuid.UUID], epoch: int) -> int:
    """Let the effects of these requests start again, as far as this epoch goes; returns how many were still ours."""
    if not ids:
        return 0
    statement = sa.text("select count(*) from clear_requests(:token, cast(:ids as uuid[]), :epoch)")
    cleared: int = connection.execute(statement, {"token": token, "ids": list(ids), "epoch": epoch}).scalar_one()
    return cleared
