"""The job of a shop, as a Dagster process finds it: by name, with everything else from its environment."""

from __future__ import annotations

import os
from pathlib import Path

import dagster as dg

from ops.batch import WorkflowRun
from ops.process_batch import process_batch
from resources.workflow import Workflow
from tests.ops import toy
from tests.ops.passes import Shop
from tests.ops.tills import HookedTill, handled_by

URL, FOLDER = "TOY_DATABASE_URL", "TOY_FOLDER"


def found_workflow(folder: Path) -> Workflow:
    """The workflow that a shop left in its folder, with a copy of its policy: another process may be reading it."""
    own = folder / f"process-{os.getpid()}"
    own.mkdir(exist_ok=True)
    workflow = toy.toy_workflow(own, folder / "till.sqlite", (folder / "policy.yaml").read_text())
    return handled_by(workflow, HookedTill(file=str(folder / "till.sqlite")))


def toy_job() -> dg.JobDefinition:
    """The graph as a job, its workflow and store found in the environment when it runs."""

    def run(_context: dg.InitResourceContext) -> WorkflowRun:
        return WorkflowRun(found_workflow(Path(os.environ[FOLDER])), os.environ[URL], lease_seconds=5)

    return process_batch.to_job(
        name="refunds_process_batch",
        resource_defs={"workflow": dg.ResourceDefinition(run)},
        executor_def=dg.in_process_executor,
        partitions_def=dg.DailyPartitionsDefinition(start_date="2026-01-01", end_offset=1),
    )


def environment(shop: Shop) -> dict[str, str]:
    """What the job of this shop finds in its environment."""
    return {URL: shop.url, FOLDER: str(shop.folder)}
