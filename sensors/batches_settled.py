"""Starts the report of a batch once it has settled, and again when something in it changed afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Final

import dagster as dg
from dagster import DagsterRunStatus, RunsFilter

from policies.run_tags import WHY, batch_tag
from sensors.due import rest_after
from sensors.reading import tick_reading
from sensors.run_requests import MOST_REQUESTS, answer, dropped
from sensors.settled import SettledBatch, settled_batches
from sensors.targets import Target

INTERVAL_SECONDS = 60

_REPORT_TAKES: Final = timedelta(minutes=30)
"""A report that is older and has not ended is not waited for: its process is gone."""

_FAILURES_COUNT_FOR: Final = timedelta(hours=1)


def batches_settled(targets: Sequence[Target]) -> dg.SensorDefinition:
    """The sensor that has the assets of settled batches made, for all workflows of a location."""
    by_name = {target.workflow: target for target in targets}

    @dg.sensor(
        name="batches_settled",
        jobs=[target.job for target in targets],
        minimum_interval_seconds=INTERVAL_SECONDS,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Makes ledger and metrics of each batch that has settled or has changed since they were made.",
    )
    def evaluate(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        with tick_reading() as connection:
            settled = settled_batches(connection, by_name)
        wanted = (one for one in settled.batches if not _has_run(context.instance, by_name[one.workflow], one))
        requests = [
            dg.RunRequest(job_name=by_name[one.workflow].job.name, partition_key=one.batch, tags={WHY: _why(one)})
            for one in islice(wanted, MOST_REQUESTS)
        ]
        unknown = [batch_tag(workflow, batch) for workflow, batch in settled.unknown]
        return answer(context, requests, nothing="No settled batch needs a report.", notes=dropped(unknown))

    return evaluate


def _why(settled: SettledBatch) -> str:
    return f"closed a day ago with {settled.open_requests} open requests" if settled.open_requests else "settled"


def _has_run(instance: dg.DagsterInstance, target: Target, settled: SettledBatch) -> bool:
    """Whether a report is under way, or failed so lately that the next try waits."""
    now = datetime.now(UTC)
    recent = instance.get_run_records(
        RunsFilter(
            job_name=target.job.name, tags={"dagster/partition": settled.batch}, created_after=now - _FAILURES_COUNT_FOR
        ),
        limit=20,
    )
    failed = [record for record in recent if record.dagster_run.status == DagsterRunStatus.FAILURE]
    if failed and now < failed[0].create_timestamp + rest_after(len(failed)):
        return True
    return any(
        not record.dagster_run.is_finished and now - record.update_timestamp < _REPORT_TAKES for record in recent
    )
