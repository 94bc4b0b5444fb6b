"""Starts runs for whatever else is due, and sees to runs whose process died."""

from __future__ import annotations

from collections.abc import Sequence

import dagster as dg

from resources.run_settings import lease_seconds
from sensors.due import OTHER_REASONS
from sensors.heartbeats import end_dead_runs
from sensors.reading import tick_reading
from sensors.run_requests import request_runs
from sensors.targets import Target

INTERVAL_SECONDS = 30


def work_due(targets: Sequence[Target]) -> dg.SensorDefinition:
    """The sensor for queued requests, retries, expired leases, unknown effects, expiries and notices.

    Landed approvals are left to their own sensor: the two tick at the same moment now and then, and would start two.
    """

    @dg.sensor(
        name="work_due",
        jobs=[target.job for target in targets],
        minimum_interval_seconds=INTERVAL_SECONDS,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Starts a run on each batch with work that is due, and reports runs failed whose process died.",
    )
    def evaluate(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        with tick_reading() as connection:
            # First, so that a dead run does not hold back the one that takes up its work.
            for run_id in end_dead_runs(
                context.instance, connection, [target.job.name for target in targets], lease_seconds()
            ):
                context.log.warning("run %s was reported ended: nothing was heard of it", run_id)
            return request_runs(context, connection, targets, OTHER_REASONS)

    return evaluate
