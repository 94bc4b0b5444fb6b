"""Batches and the runs on them: when one was opened, whether its runs are alive, how it stands."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from resources.store.queries import query


def open_batch(connection: sa.Connection, workflow: str, batch: str, run_id: str) -> datetime:
    """Note that a run opened the batch and return the database's instant: what was due by then is advanced."""
    instant: datetime = connection.execute(
        query("open_batch"), {"workflow": workflow, "batch": batch, "run_id": run_id}
    ).scalar_one()
    return instant


def pass_instant(connection: sa.Connection, workflow: str, batch: str, run_id: str) -> datetime:
    """The instant at which this run's pass opened; opens it where the run began at a later step."""
    instant: datetime = connection.execute(
        query("pass_instant"), {"workflow": workflow, "batch": batch, "run_id": run_id}
    ).scalar_one()
    return instant


def beat(connection: sa.Connection, run_id: str, moved: int = 0) -> None:
    """The run is alive and has moved so many requests more."""
    connection.execute(
        sa.text("update batch_runs set beat_at = clock_timestamp(), moved = moved + :moved where run_id = :run_id"),
        {"run_id": run_id, "moved": moved},
    )


def close_run(connection: sa.Connection, workflow: str, batch: str, run_id: str) -> None:
    """The run is over; an idle one (nothing moved) makes sensors wait longer before the next for queued work."""
    connection.execute(query("close_run"), {"workflow": workflow, "batch": batch, "run_id": run_id})


@dataclass(frozen=True, slots=True)
class BatchStanding:
    """Where a batch stands: requests by state, open dead letters, the sum of state changes, work due now."""

    by_state: dict[str, int]
    open_cases: int
    change_seq: int
    due: int


def batch_standing(connection: sa.Connection, workflow: str, batch: str) -> BatchStanding:
    """Counts of one batch."""
    key = {"workflow": workflow, "batch": batch}
    counts = connection.execute(
        sa.text("select state, requests, seq from batch_counts where workflow = :workflow and batch_key = :batch"), key
    ).all()
    cases: int = connection.execute(query("open_cases"), key).scalar_one()
    due: int = connection.execute(
        sa.text("select coalesce(sum(requests), 0) from due_batches where workflow = :workflow and batch_key = :batch"),
        key,
    ).scalar_one()
    return BatchStanding(
        {row.state: row.requests for row in counts}, cases, int(sum(row.seq for row in counts)), int(due)
    )


def parked_requests(connection: sa.Connection, workflow: str, batch: str, limit: int) -> list[dict[str, Any]]:
    """The oldest parked and waiting requests with their reasons, for a person to read."""
    rows = connection.execute(query("parked_requests"), {"workflow": workflow, "batch": batch, "limit": limit})
    return [dict(row) for row in rows.mappings()]
