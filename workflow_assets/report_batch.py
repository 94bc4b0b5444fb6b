"""The job `<workflow>_report_batch`: makes the two assets of a settled batch from one moment of the store."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import dagster as dg

from policies.asset_names import AUDIT_LEDGER, EVALUATION_METRICS, REQUEST_BATCH
from resources.database_url import database_url
from resources.store.engine import Duty, engine_for, transaction
from resources.store.reading import reading
from resources.store.reports import batch_change, record_report
from resources.workflow import Workflow
from workflow_assets.audit_ledger import audit_ledger
from workflow_assets.checks import report_checks
from workflow_assets.evaluation_metrics import evaluation_metrics
from workflow_assets.partitions import batch_partitions

if TYPE_CHECKING:
    from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition

_REPORT_SECONDS = 120
"""For one statement; a batch of 100,000 requests takes a few seconds."""


def report_assets(workflow: Workflow) -> dg.AssetsDefinition:
    """Both assets of a workflow, made together: what one says must be of the same moment as what the other says."""

    @dg.multi_asset(
        name=f"{workflow.name}__report_batch",
        specs=[
            _spec(workflow, AUDIT_LEDGER, "Events of a batch by type, and whether each request's chain is whole."),
            _spec(workflow, EVALUATION_METRICS, "What became of a batch's requests, by risk tier."),
        ],
        check_specs=report_checks(workflow),
    )
    def report(context: dg.AssetExecutionContext) -> Iterator[dg.MaterializeResult[None]]:
        url, batch = database_url(), context.partition_key
        with reading(url, seconds=_REPORT_SECONDS) as connection:
            change = batch_change(connection, workflow.name, batch)
            results = [
                audit_ledger(connection, workflow.name, batch),
                evaluation_metrics(connection, workflow.name, batch, change),
            ]
        yield from results
        with transaction(engine_for(Duty.WORKER, url)) as connection:
            record_report(connection, workflow.name, batch, change)

    return report


def report_job(workflow: Workflow) -> "UnresolvedAssetJobDefinition":
    """The job that the sensor starts; the assets can be made from their own pages as well."""
    return dg.define_asset_job(
        f"{workflow.name}_report_batch",
        selection=dg.AssetSelection.assets(
            dg.AssetKey([workflow.name, AUDIT_LEDGER]), dg.AssetKey([workflow.name, EVALUATION_METRICS])
        )
        | dg.AssetSelection.checks_for_assets(dg.AssetKey([workflow.name, REQUEST_BATCH])),
        description=f"Makes ledger and metrics of one settled batch of {workflow.name}, and looks at its checks. "
        "Safe to run again.",
        executor_def=dg.in_process_executor,
    )


def _spec(workflow: Workflow, name: str, description: str) -> dg.AssetSpec:
    return dg.AssetSpec(
        dg.AssetKey([workflow.name, name]),
        deps=[dg.AssetKey([workflow.name, REQUEST_BATCH])],
        description=description,
        group_name=workflow.name,
        partitions_def=batch_partitions(workflow.batches),
    )
