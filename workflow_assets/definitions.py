"""What a code location loads for its workflows."""

from __future__ import annotations

from collections import Counter

import dagster as dg

from policies.asset_names import REQUEST_BATCH
from policies.errors import DefinitionError
from resources.outbox.destination import Destination
from resources.workflow import Workflow
from sensors.approvals_landed import approvals_landed
from sensors.batches_settled import batches_settled
from sensors.outbox_waiting import outbox_waiting
from sensors.targets import Target
from sensors.work_due import work_due
from workflow_assets.batch_job import batch_job
from workflow_assets.checks import request_checks
from workflow_assets.outbox_job import outbox_job
from workflow_assets.partitions import batch_partitions
from workflow_assets.report_batch import report_assets, report_job


def definitions(*workflows: Workflow, outbox: Destination | None = None) -> dg.Definitions:
    """Jobs, assets, asset checks and sensors of all workflows of a code location; merge it with your own.

    Call it once in a location: the sensors serve every workflow of it. With `outbox`, what becomes of effects and what
    waits for people is published there (`fs.Webhook`, `fs.Mailbox`), by a job and a sensor of their own; without it
    nothing is, and events stay in the store.

    Raises:
        DefinitionError: there is no workflow, or two have the same name.
    """
    if not workflows:
        raise DefinitionError("definitions: name at least one workflow: fs.definitions(refunds)")
    twice = [name for name, count in Counter(workflow.name for workflow in workflows).items() if count > 1]
    if twice:
        raise DefinitionError(f"definitions: two workflows are named {twice[0]!r}; a name stands for one workflow")
    batch_jobs = [
        Target(workflow.name, workflow.batches, batch_job(workflow), batch_partitions(workflow.batches))
        for workflow in workflows
    ]
    report_jobs = [
        Target(workflow.name, workflow.batches, report_job(workflow), batch_partitions(workflow.batches))
        for workflow in workflows
    ]
    outbox_jobs = [outbox_job(outbox)] if outbox is not None else []
    return dg.Definitions(
        assets=[
            *(_request_batch(workflow) for workflow in workflows),
            *(report_assets(workflow) for workflow in workflows),
        ],
        asset_checks=[check for workflow in workflows for check in request_checks(workflow)],
        jobs=[*(target.job for target in (*batch_jobs, *report_jobs)), *outbox_jobs],
        sensors=[
            approvals_landed(batch_jobs),
            work_due(batch_jobs),
            batches_settled(report_jobs),
            *map(outbox_waiting, outbox_jobs),
        ],
    )


def _request_batch(workflow: Workflow) -> dg.AssetSpec:
    """The requests themselves: no run of ours makes them, so Dagster only shows them as the start of the lineage."""
    return dg.AssetSpec(
        dg.AssetKey([workflow.name, REQUEST_BATCH]),
        deps=list(workflow.deps),
        description=f"Requests received in one window; the job `{workflow.name}_process_batch` advances them.",
        group_name=workflow.name,
        partitions_def=batch_partitions(workflow.batches),
    )
