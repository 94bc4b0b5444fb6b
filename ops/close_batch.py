"""Step `close_batch`: repeat the pass until nothing is due, then say how the batch stands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ops.batch import Batch, Counts, moved, open_pass
from resources.failpoints import Failpoint, reach
from resources.store import batches
from resources.store.batches import BatchStanding
from resources.store.engine import transaction
from resources.store.reports import Waiting, waiting_in_batch
from resources.store.stuck import LastingUnknown, StuckWork, lasting_unknowns, stuck_work

MAX_PASSES = 3
"""Repeated passes of one run: votes that land while it works cost no new process, yet it ends; sensors go on."""

MAX_ROWS = 50
"""Parked requests shown in a run; all of them are in the inbox."""

Step = Callable[[Batch], Counts]


@dataclass(frozen=True, slots=True)
class BatchReport:
    """How a batch stands after a run."""

    standing: BatchStanding
    counts: Counts
    parked: list[dict[str, Any]]
    waiting: Waiting
    stuck: Sequence[StuckWork]
    unknowns: Sequence[LastingUnknown]


def close_batch(batch: Batch, steps: Sequence[Step]) -> BatchReport:
    """Run further passes while work is due, note the end of the run, and report."""
    counts = Counts()
    for _ in range(MAX_PASSES):
        with transaction(batch.engine) as connection:
            standing = batches.batch_standing(connection, batch.workflow.name, batch.key)
        if not standing.due:
            break
        repeated = _repeat(open_pass(batch.run, batch.key, batch.run_id), steps)
        counts += repeated
        if not moved(repeated):
            break  # what is due is in other hands, or waits for a service that is down
    with transaction(batch.engine) as connection:
        batches.close_run(connection, batch.workflow.name, batch.key, batch.run_id)
        standing = batches.batch_standing(connection, batch.workflow.name, batch.key)
        parked = batches.parked_requests(connection, batch.workflow.name, batch.key, MAX_ROWS)
        waiting = waiting_in_batch(connection, batch.workflow.name, batch.key)
        stuck = stuck_work(connection, batch.workflow.name, batch.key, batch.run.lease_seconds)
        unknowns = lasting_unknowns(connection, batch.workflow, batch.key)
        reach(Failpoint.CLOSING)
    reach(Failpoint.CLOSED)
    return BatchReport(standing, counts, parked, waiting, stuck, unknowns)


def _repeat(batch: Batch, steps: Sequence[Step]) -> Counts:
    counts = Counts()
    for step in steps:
        counts += batch.carry_out(step)
    return counts
