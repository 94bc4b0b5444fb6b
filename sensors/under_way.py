"""What Dagster is already doing about a batch. Advice that saves work: leases, not this, keep runs from each other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

import sqlalchemy as sa
from dagster import DagsterInstance, DagsterRunStatus, RunRecord, RunsFilter

from policies.run_tags import BATCH, batch_tag
from sensors.due import LONGEST_REST, QUEUED, DueBatch, rest_after
from sensors.heartbeats import silent_seconds

LOST_START: Final = timedelta(minutes=10)
"""A run that was handed to a launcher and has not started by then is not waited for: its process never came up."""

_UNDER_WAY = (
    DagsterRunStatus.QUEUED,
    DagsterRunStatus.NOT_STARTED,
    DagsterRunStatus.STARTING,
    DagsterRunStatus.STARTED,
    DagsterRunStatus.CANCELING,
)
_STARTING = (DagsterRunStatus.NOT_STARTED, DagsterRunStatus.STARTING)
_MOST_RUNS = 2_000


@dataclass(slots=True)
class UnderWay:
    """The runs of one batch that matter now."""

    yet_to_open: bool = False
    """A run is queued or starting, and will see whatever is due when it opens the batch."""
    opened: bool = False
    """A run is at work on the batch."""
    pausing: bool = False
    """Runs keep failing before they open the batch (a broken environment), so the next one waits."""

    def hold_back(self, due: DueBatch) -> bool:
        """Whether no further run is to be started for what is due.

        A run at work goes on until nothing is due, so it suffices for newly queued work and for whatever it has seen;
        what became due since it opened (an approval, a retry) does not wait for its end.
        """
        if due.resting or self.yet_to_open or self.pausing:
            return True
        return self.opened and set(due.fresh) <= {QUEUED}


def under_way(instance: DagsterInstance, connection: sa.Connection, due: Sequence[DueBatch]) -> dict[str, UnderWay]:
    """For each of these batches, by the value of its run tag, what its runs are doing."""
    found: dict[str, UnderWay] = {batch_tag(one.workflow, one.batch): UnderWay() for one in due}
    if not found:
        return found
    now = datetime.now(UTC)
    live = _records(instance, RunsFilter(tags={BATCH: list(found)}, statuses=list(_UNDER_WAY)))
    failed = _records(
        instance,
        RunsFilter(tags={BATCH: list(found)}, statuses=[DagsterRunStatus.FAILURE], created_after=now - LONGEST_REST),
    )
    opened = silent_seconds(connection, [record.dagster_run.run_id for record in (*live, *failed)])
    for record in live:
        runs, run = found[record.dagster_run.tags[BATCH]], record.dagster_run
        if run.run_id in opened:
            runs.opened = True
        elif run.status not in _STARTING or now - record.update_timestamp < LOST_START:
            runs.yet_to_open = True
    failures: dict[str, list[datetime]] = defaultdict(list)
    for record in failed:
        if record.dagster_run.run_id not in opened:
            failures[record.dagster_run.tags[BATCH]].append(record.create_timestamp)
    for tag, times in failures.items():
        found[tag].pausing = now < max(times) + rest_after(len(times))
    return found


def _records(instance: DagsterInstance, wanted: RunsFilter) -> Sequence[RunRecord]:
    return instance.get_run_records(wanted, limit=_MOST_RUNS)
