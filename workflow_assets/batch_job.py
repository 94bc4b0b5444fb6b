"""The job of one workflow: the graph that all workflows share, with this workflow's batches and run history."""

from __future__ import annotations

import dagster as dg

from ops.batch import WorkflowRun
from ops.process_batch import process_batch
from policies.run_tags import BATCH, batch_tag
from resources.database_url import database_url
from resources.run_settings import backoff_base_seconds, lease_seconds
from resources.workflow import Workflow
from workflow_assets.partitions import batch_partitions


def batch_job(workflow: Workflow) -> dg.JobDefinition:
    """The job `<workflow>_process_batch`, with a partition for each batch. It never needs run config."""
    return process_batch.to_job(
        name=f"{workflow.name}_process_batch",
        description=f"Advances every request of one batch of {workflow.name} as far as it goes now. Safe to run again.",
        resource_defs={"workflow": _workflow_run(workflow)},
        executor_def=dg.in_process_executor,  # a process for each step would cost seconds a step
        config=dg.PartitionedConfig(
            partitions_def=batch_partitions(workflow.batches),
            run_config_for_partition_key_fn=lambda _batch: {},
            tags_for_partition_key_fn=lambda batch: {BATCH: batch_tag(workflow.name, batch)},
        ),
        tags={
            # A red run says that a person has something to do; running it again would say so again.
            "dagster/retry_on_asset_or_op_failure": "false",
            # A later step alone would leave out what the earlier ones now find due.
            "dagster/retry_strategy": "ALL_STEPS",
        },
    )


def _workflow_run(workflow: Workflow) -> dg.ResourceDefinition:
    """Resolved in the process of the run: neither a database URL nor any other setting is part of the definition."""
    return dg.ResourceDefinition(
        resource_fn=lambda _context: WorkflowRun(workflow, database_url(), lease_seconds(), backoff_base_seconds()),
        description=f"The workflow {workflow.name}, version {workflow.version}, and its store.",
    )
