"""What of a batch does not move, and what nobody knows of it: for those who are on call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

import sqlalchemy as sa

from policies.refusals import NOT_STARTED
from policies.stuck_work import HELD_FOR, Stuck, unknown_for, untouched_for
from resources.store.queries import query
from resources.workflow import Workflow

MAX_NAMES = 5
"""Requests or keys named of each group; the same query finds the others."""

MAX_GROUPS = 50


@dataclass(frozen=True, slots=True)
class StuckWork:
    """Requests that do not move for one reason; `oldest` names those that have stood longest."""

    why: Stuck
    reason: str
    requests: int
    oldest_seconds: float
    oldest: list[str]


@dataclass(frozen=True, slots=True)
class LastingUnknown:
    """Effects at one provider of which nobody has known for long; `waits_for`: a `look-up` by a run, or a `person`."""

    provider: str
    waits_for: str
    effects: int
    oldest_seconds: float
    oldest: list[str]


def stuck_work(connection: sa.Connection, workflow: str, batch: str, lease_seconds: float) -> Sequence[StuckWork]:
    """Open work of a batch that waits for no person and does not move, what has stood longest first."""
    values = {
        "workflow": workflow,
        "batch": batch,
        "untouched_for": untouched_for(timedelta(seconds=lease_seconds)),
        "held_for": HELD_FOR,
        "not_started": NOT_STARTED,
        "names": MAX_NAMES,
        "limit": MAX_GROUPS,
    }
    rows = connection.execute(query("stuck_work"), values)
    return [StuckWork(Stuck(row.why), row.reason, row.requests, row.oldest_seconds, row.oldest) for row in rows]


def lasting_unknowns(connection: sa.Connection, workflow: Workflow, batch: str) -> Sequence[LastingUnknown]:
    """Effects of a batch that have been unknown for longer than a look-up needs, the oldest first."""
    lags = [entry.semantics.visible_after for entry in workflow.catalogue.entries.values()]
    values = {"workflow": workflow.name, "batch": batch, "unknown_for": unknown_for(lags), "names": MAX_NAMES}
    return [LastingUnknown(*row) for row in connection.execute(query("lasting_unknowns"), values)]
