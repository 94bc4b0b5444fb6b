"""The process of one run, as a launcher starts it: `python -m benchmarks.one_run BATCH`; prints the run's id."""

from __future__ import annotations

import os
import sys

import dagster as dg

from benchmarks.workflow import WORKFLOW_VARIABLE, job


def run(batch: str) -> str:
    """Advance one batch of the workflow that the environment names and return the id of the run.

    Raises:
        SystemExit: the run failed.
    """
    from policies.run_tags import BATCH, batch_tag

    with dg.DagsterInstance.get() as instance:
        tags = {"dagster/partition": batch, BATCH: batch_tag(os.environ[WORKFLOW_VARIABLE], batch)}
        result = dg.execute_job(dg.reconstructable(job), instance, tags=tags)
    if not result.success:
        sys.exit(f"run {result.run_id} failed")
    return result.run_id


if __name__ == "__main__":
    print(run(sys.argv[1]))
