"""From due batches to run requests: what every sensor that starts batch jobs has in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import dagster as dg
import sqlalchemy as sa

from policies.run_tags import WHY, batch_tag
from sensors.due import due_batches
from sensors.targets import Target
from sensors.under_way import under_way

MOST_REQUESTS: Final = 20
"""Run requests of one tick: each costs the daemon a few tenths of a second, and the next tick brings the rest."""

_MOST_LOOKED_AT = 200
"""Batches of one tick for which runs are looked up; a batch that is opened moves to the end of the line."""


def request_runs(
    context: dg.SensorEvaluationContext, connection: sa.Connection, targets: Sequence[Target], reasons: Sequence[str]
) -> dg.SensorResult:
    """Ask for one run of each batch that is due for one of `reasons` and has none that would do.

    There is no `run_key`: a key that was used once could only lose work, while a run too many finds nothing to do.
    """
    by_name = {target.workflow: target for target in targets}
    due = due_batches(connection, list(by_name), reasons)
    known = [one for one in due if by_name[one.workflow].has(one.batch)]
    looked_at = known[:_MOST_LOOKED_AT]
    runs = under_way(context.instance, connection, looked_at)
    wanted = [one for one in looked_at if not runs[batch_tag(one.workflow, one.batch)].hold_back(one)]
    requests = [
        dg.RunRequest(
            job_name=by_name[one.workflow].job.name, partition_key=one.batch, tags={WHY: ", ".join(one.reasons)}
        )
        for one in wanted[:MOST_REQUESTS]
    ]
    unknown = [batch_tag(one.workflow, one.batch) for one in due if not by_name[one.workflow].has(one.batch)]
    return answer(
        context,
        requests,
        nothing="No batch is due." if not due else f"{len(due)} batches are due, but none needs another run now.",
        notes=[*_left(len(wanted)), *dropped(unknown)],
    )


def dropped(unknown: Sequence[str]) -> list[str]:
    """What to say of batches that their job does not have now: its start was moved later, or two clocks differ."""
    if not unknown:
        return []
    named = ", ".join(unknown[:5]) + (", ..." if len(unknown) > 5 else "")
    remedy = "Let `batches` of the workflow start earlier, or compare the clocks of database and code location."
    return [f"{len(unknown)} batches are no partitions of their jobs now and were left out: {named}. {remedy}"]


def answer(
    context: dg.SensorEvaluationContext, requests: Sequence[dg.RunRequest], *, nothing: str, notes: Sequence[str]
) -> dg.SensorResult:
    """A tick's result: notes go to its log, and into the reason for skipping where there are no run requests."""
    if not requests:
        return dg.SensorResult(skip_reason=" ".join([nothing, *notes]))
    for note in notes:
        context.log.warning(note)
    return dg.SensorResult(run_requests=list(requests))


def _left(wanted: int) -> list[str]:
    return [f"{wanted - MOST_REQUESTS} more batches wait for the next tick."] if wanted > MOST_REQUESTS else []
