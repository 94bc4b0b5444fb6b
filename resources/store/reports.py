"""What the assets of a settled batch are made from, and the note that they were made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from policies.states import OPEN, PARKED
from resources.store.queries import query

MAX_KEYS = 50
"""Idempotency keys named where a check fails; the others are found by the same query."""


@dataclass(frozen=True, slots=True)
class BatchChange:
    """How far a batch had come at one moment. `seq` rises with every change of any request's state."""

    seq: int
    requests: int
    open: int
    parked: int


def batch_change(connection: sa.Connection, workflow: str, batch: str) -> BatchChange:
    """How far a batch has come."""
    states = {"open_states": [state.value for state in OPEN], "parked_states": [state.value for state in PARKED]}
    row = connection.execute(query("batch_change"), {"workflow": workflow, "batch": batch, **states}).one()
    return BatchChange(int(row.seq), row.requests, row.open, row.parked)


def batch_evaluation(connection: sa.Connection, workflow: str, batch: str) -> Sequence[sa.Row[Any]]:
    """One row a request (columns of `sql/batch_evaluation.sql`)."""
    return connection.execute(query("batch_evaluation"), {"workflow": workflow, "batch": batch}).all()


def duplicate_effects(connection: sa.Connection, workflow: str, batch: str) -> Sequence[str]:
    """Idempotency keys of effects that happened too often."""
    return _keys(connection, "duplicate_effects", workflow, batch)


def unauthorized_effects(connection: sa.Connection, workflow: str, batch: str) -> Sequence[str]:
    """Idempotency keys of effects that nothing in the store allowed."""
    return _keys(connection, "unauthorized_effects", workflow, batch)


def open_cases(connection: sa.Connection, workflow: str, batch: str) -> int:
    """Open dead letters of a batch."""
    count: int = connection.execute(query("open_cases"), {"workflow": workflow, "batch": batch}).scalar_one()
    return count


@dataclass(frozen=True, slots=True)
class Waiting:
    """Open approval requests of a batch: `late` ones have used up more than half of the time until they expire."""

    open: int
    late: int
    oldest_seconds: float


def waiting_in_batch(connection: sa.Connection, workflow: str, batch: str) -> Waiting:
    """How long people have been asked about what is in a batch."""
    return Waiting(*connection.execute(query("waiting_in_batch"), {"workflow": workflow, "batch": batch}).one())


def record_report(connection: sa.Connection, workflow: str, batch: str, change: BatchChange) -> None:
    """Note that a batch's assets were made from `change`, so that only a later change makes them anew."""
    connection.execute(
        query("record_report"),
        {"workflow": workflow, "batch": batch, "seq": change.seq, "unfinished": change.open + change.parked},
    )


def _keys(connection: sa.Connection, name: str, workflow: str, batch: str) -> Sequence[str]:
    found = connection.execute(query(name), {"workflow": workflow, "batch": batch, "limit": MAX_KEYS})
    return found.scalars().all()
