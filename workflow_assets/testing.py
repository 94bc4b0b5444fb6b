"""What users' own tests need: `fs.testing`."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import dagster as dg
import sqlalchemy as sa

from ops.batch import WorkflowRun
from policies.actions import Request
from policies.states import State
from resources.adapters.conformance import Check, Report, Status, conformance
from resources.run_settings import backoff_base_seconds, lease_seconds
from resources.store.engine import Duty, engine_for, transaction
from resources.store.intake import submit_rows
from resources.store.migrate import upgrade
from resources.store.principals import create_principal
from resources.store.queries import query
from resources.workflow import Workflow
from workflow_assets.batch_job import batch_job

__all__ = ["Check", "EffectOutcome", "Report", "RequestOutcome", "Status", "conformance", "run"]


@dataclass(frozen=True, slots=True)
class EffectOutcome:
    """One effect of a request, as the store knows it."""

    action_type: str
    state: str
    reference: str | None


@dataclass(frozen=True, slots=True)
class RequestOutcome:
    """Where a request stands after the run. `tier` and `decision` are None where nothing was assessed."""

    request_id: uuid.UUID
    state: State
    reason: str | None
    tier: str | None
    decision: str | None
    effects: tuple[EffectOutcome, ...]


def run(
    workflow: Workflow,
    requests: Sequence[Request],
    *,
    database_url: str,
    roles: Sequence[str] | None = None,
    subject: str | None = None,
) -> list[RequestOutcome]:
    """Submit requests and run the workflow's job on them once, in this process; returns their outcomes in order.

    Effects are real: give the workflow adapters of a sandbox.

    Args:
        workflow: the definition under test.
        requests: instances of its request class.
        database_url: of a database for tests alone, by a login that may create roles; it gets the schema of this code.
        roles: those of the principal that submits; default: every role that the policy permits an action to.
        subject: on whose behalf the requests are.

    Raises:
        OperationConflict, RequestRefused: a request was not accepted.
    """
    upgrade(database_url)
    held = _permitted_roles(workflow) if roles is None else roles
    who = create_principal(database_url, kind="service", name=f"test-{uuid.uuid4().hex}", roles=held)
    rows = {
        f"test-{uuid.uuid4().hex}": {"payload": request.model_dump(mode="json"), "subject": subject}
        for request in requests
    }
    submission = submit_rows(
        [{"operation_id": name, **row} for name, row in rows.items()],
        workflow=workflow,
        principal=who.token,
        database_url=database_url,
    )
    submission.raise_for_problems()
    accepted = {receipt.operation_id: receipt for receipt in submission.receipts}
    receipts = [accepted[operation_id] for operation_id in rows]
    with dg.DagsterInstance.ephemeral() as instance:
        for batch in sorted({receipt.batch_key for receipt in receipts}):  # midnight may fall between two chunks
            _run_batch(workflow, batch, instance, database_url)
    return _outcomes(database_url, [receipt.request_id for receipt in receipts])


def _permitted_roles(workflow: Workflow) -> list[str]:
    permissions = workflow.policy_in_force().permissions or {}
    return sorted({role for roles in permissions.values() for role in roles})


def _run_batch(workflow: Workflow, batch: str, instance: dg.DagsterInstance, database_url: str) -> None:
    try:
        batch_job(workflow).execute_in_process(
            partition_key=batch,
            instance=instance,
            resources={"workflow": WorkflowRun(workflow, database_url, lease_seconds(), backoff_base_seconds())},
        )
    except dg.Failure:
        # The batch holds an open dead letter: everything was recorded before the run ended, and the outcome says so.
        return


def _outcomes(database_url: str, ids: Sequence[uuid.UUID]) -> list[RequestOutcome]:
    with transaction(engine_for(Duty.AUDITOR, database_url)) as connection:
        rows = {row.request_id: row for row in connection.execute(query("request_outcomes"), {"ids": list(ids)})}
    return [_outcome(rows[request_id]) for request_id in ids]


def _outcome(row: sa.Row[Any]) -> RequestOutcome:
    effects = tuple(EffectOutcome(one["action_type"], one["state"], one["reference"]) for one in row.effects)
    return RequestOutcome(row.request_id, State(row.state), row.reason, row.tier, row.decision, effects)
