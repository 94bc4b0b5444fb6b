"""How each workflow stands: requests by state, in all and by batch, open dead letters, and what has waited longest."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from policies.states import TERMINAL
from resources.store.engine import Duty, engine_for, transaction
from resources.store.queries import query


@dataclass(slots=True)
class WorkflowStatus:
    """One workflow. `oldest_waiting` is when the oldest request that has not ended was received."""

    workflow: str
    states: dict[str, int] = field(default_factory=dict)
    batches: dict[str, dict[str, int]] = field(default_factory=dict)
    open_dead_letters: int = 0
    oldest_waiting: datetime | None = None


def workflow_statuses(database_url: str, workflow: str | None = None) -> list[WorkflowStatus]:
    """The status of every workflow that has requests, or of one."""
    found: dict[str, WorkflowStatus] = {}
    with transaction(engine_for(Duty.AUDITOR, database_url)) as connection:
        counts = connection.execute(query("workflow_standing"), {"workflow": workflow}).all()
        cases = connection.execute(query("open_cases_by_workflow"), {"workflow": workflow}).all()
    for row in counts:
        status = found.setdefault(row.workflow, WorkflowStatus(row.workflow))
        status.states[row.state] = status.states.get(row.state, 0) + row.requests
        status.batches.setdefault(row.batch_key, {})[row.state] = row.requests
        if row.state not in TERMINAL and (status.oldest_waiting is None or row.oldest < status.oldest_waiting):
            status.oldest_waiting = row.oldest
    for row in cases:
        found[row.workflow].open_dead_letters = row.cases
    return list(found.values())
