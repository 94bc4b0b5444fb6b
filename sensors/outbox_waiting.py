"""Starts publishing as soon as an event waits for it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from typing import Final

import dagster as dg
from dagster import DagsterRunStatus, RunRecord, RunsFilter

from policies.run_tags import PARKED, PUBLISHED, WHY
from resources.store.queries import query
from sensors.due import rest_after
from sensors.reading import tick_reading
from sensors.run_requests import answer
from sensors.under_way import LOST_START

INTERVAL_SECONDS: Final = 9
"""The daemon looks every 5 s; an interval of 10 would miss every other second turn."""

RUN_TAKES: Final = timedelta(minutes=5)
"""A run ends within three minutes; one that is at it for longer is not waited for: its process is gone, or hangs."""

_LOOK_BACK: Final = timedelta(hours=1)


def outbox_waiting(job: dg.JobDefinition) -> dg.SensorDefinition:
    """The sensor of the job `publish_outbox`."""

    @dg.sensor(
        name="outbox_waiting",
        job=job,
        minimum_interval_seconds=INTERVAL_SECONDS,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Starts publishing when events wait in the outbox; rests while the receiver takes none.",
    )
    def evaluate(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        with tick_reading() as connection:
            due = connection.execute(query("outbox_waiting")).one()
        if not due.events:
            return answer(context, [], nothing="No event is due to be published.", notes=[])
        waits = f"{due.events} requests have an event to publish, the oldest for {due.seconds:.0f} s"
        why_not = _why_not(context.instance, job.name)
        if why_not:
            return answer(context, [], nothing=f"{waits}, but {why_not}.", notes=[])
        return answer(context, [dg.RunRequest(job_name=job.name, tags={WHY: waits})], nothing="", notes=[])

    return evaluate


def _why_not(instance: dg.DagsterInstance, job: str) -> str:
    """Why no run is to be started now: advice that saves processes; two runs at once only share the work."""
    now = datetime.now(UTC)
    recent = instance.get_run_records(RunsFilter(job_name=job, created_after=now - _LOOK_BACK), limit=20)
    waiting = instance.get_run_records(RunsFilter(job_name=job, statuses=[DagsterRunStatus.QUEUED]), limit=1)
    if waiting or any(map(_is_under_way, recent)):
        return "a run is under way"
    fruitless = _fruitless(recent)
    if fruitless and now < fruitless[0].create_timestamp + rest_after(len(fruitless)):
        return f"the last {len(fruitless)} runs published nothing, so the next one waits"
    return ""


def _is_under_way(record: RunRecord) -> bool:
    if record.dagster_run.is_finished:
        return False
    starting = record.dagster_run.status in (DagsterRunStatus.NOT_STARTED, DagsterRunStatus.STARTING)
    return datetime.now(UTC) - record.update_timestamp < (LOST_START if starting else RUN_TAKES)


def _fruitless(newest_first: Iterable[RunRecord]) -> Sequence[RunRecord]:
    """The last runs in a row that brought nothing to the receiver and gave nothing up."""
    ended = (record for record in newest_first if record.dagster_run.is_finished)
    return list(takewhile(_published_nothing, ended))


def _published_nothing(record: RunRecord) -> bool:
    tags = record.dagster_run.tags
    return PARKED not in tags and tags.get(PUBLISHED, "0") == "0"
