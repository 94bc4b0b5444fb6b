"""Which batches have settled and have no report of what they are now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import sqlalchemy as sa

from policies.settling import is_settled
from policies.states import OPEN
from resources.store.queries import query
from sensors.targets import Target


@dataclass(frozen=True, slots=True)
class SettledBatch:
    """One batch whose assets are to be made."""

    workflow: str
    batch: str
    open_requests: int


@dataclass(frozen=True, slots=True)
class Settled:
    """The answer: what to report, and the keys that the partitions definition does not have."""

    batches: list[SettledBatch]
    unknown: list[tuple[str, str]]


def settled_batches(connection: sa.Connection, targets: Mapping[str, Target]) -> Settled:
    """Settled batches that have no report, or changed since; those without any report first.

    Requests are counted only in batches whose window is over and in which something can still have changed, so a long
    history costs nothing.
    """
    rows = connection.execute(query("unreported_batches"), {"workflows": list(targets)}).all()
    known = [row for row in rows if targets[row.workflow].has(row.batch_key)]
    ended = {
        (row.workflow, row.batch_key): (end, row.now)
        for row in known
        if is_settled(end := targets[row.workflow].windows.bounds(row.batch_key)[1], row.now, open_requests=0)
    }
    unknown = [(row.workflow, row.batch_key) for row in rows if not targets[row.workflow].has(row.batch_key)]
    if not ended:
        return Settled([], unknown)
    changed = connection.execute(
        query("changed_batches"),
        {
            "workflows": [workflow for workflow, _ in ended],
            "batches": [batch for _, batch in ended],
            "open_states": [state.value for state in OPEN],
        },
    )
    open_by_batch = {(row.workflow, row.batch_key): row.open for row in changed}
    return Settled(
        [
            SettledBatch(*key, open_by_batch[key])
            for key, (end, now) in ended.items()
            if key in open_by_batch and is_settled(end, now, open_by_batch[key])
        ],
        unknown,
    )
