"""Starts a run as soon as people have released something."""

from __future__ import annotations

from collections.abc import Sequence

import dagster as dg

from sensors.due import APPROVAL_LANDED
from sensors.reading import tick_reading
from sensors.run_requests import request_runs
from sensors.targets import Target

INTERVAL_SECONDS = 4
"""The daemon looks every 5 s; an interval of 5 would miss every other turn."""


def approvals_landed(targets: Sequence[Target]) -> dg.SensorDefinition:
    """The sensor that brings released requests to execution, for all workflows of a location."""

    @dg.sensor(
        name="approvals_landed",
        jobs=[target.job for target in targets],
        minimum_interval_seconds=INTERVAL_SECONDS,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Starts a run on each batch in which people have released a request since it was last opened.",
    )
    def evaluate(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        with tick_reading() as connection:
            return request_runs(context, connection, targets, [APPROVAL_LANDED])

    return evaluate
