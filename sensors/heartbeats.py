"""Runs of this location's jobs that are under way, and whether anything is heard of them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

import sqlalchemy as sa
from dagster import DagsterInstance, DagsterRunStatus, RunRecord, RunsFilter

from resources.store.queries import query

OPENING_SECONDS: Final = 120.0
"""A started run opens its batch within seconds; after this long without it, its process is gone."""

_MOST_RUNS = 500


def silent_seconds(connection: sa.Connection, run_ids: Sequence[str]) -> dict[str, float]:
    """Seconds since each run was last heard of, by the database clock; runs that never opened a batch are left out."""
    if not run_ids:
        return {}
    rows = connection.execute(query("run_heartbeats"), {"run_ids": list(run_ids)})
    return {row.run_id: row.silent_seconds for row in rows}


def end_dead_runs(
    instance: DagsterInstance, connection: sa.Connection, jobs: Sequence[str], lease_seconds: float
) -> list[str]:
    """Report started runs failed of which nothing was heard for two lease times; returns their ids.

    Dagster's default launcher never looks after a process it started, so a killed one would stay "started" and keep its
    slot. This says nothing about the work: leases alone do, and a run that is alive after all harms nothing.
    """
    under_way = [
        record
        for job in jobs
        for record in instance.get_run_records(
            RunsFilter(job_name=job, statuses=[DagsterRunStatus.STARTED, DagsterRunStatus.CANCELING]), limit=_MOST_RUNS
        )
    ]
    silent = silent_seconds(connection, [record.dagster_run.run_id for record in under_way])
    return [
        record.dagster_run.run_id for record in under_way if _end_if_dead(instance, record, silent, 2 * lease_seconds)
    ]


def _end_if_dead(instance: DagsterInstance, record: RunRecord, silent: dict[str, float], limit: float) -> bool:
    run = record.dagster_run
    seconds = silent.get(run.run_id)
    if seconds is None:
        since_start = time.time() - (record.start_time or record.create_timestamp.timestamp())
        seconds, limit = since_start, OPENING_SECONDS
    if seconds <= limit:
        return False
    message = (
        f"Nothing was heard of this run for {seconds:.0f} s: its process is gone, or hangs. "
        "What it held comes free when its leases run out, and the next run takes it up; nothing is done twice."
    )
    if run.status == DagsterRunStatus.CANCELING:
        instance.report_run_canceled(run, message)
    else:
        instance.report_run_failed(run, message)
    return True
