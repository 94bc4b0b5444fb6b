"""Runs one workflow's job on one batch in this process, as a run of the Dagster instance in DAGSTER_HOME.

python -m console.run_job examples.expenses.definitions expenses 2026-11-29
"""

from __future__ import annotations

import sys
from importlib import import_module

import dagster as dg


def run_job(module: str, workflow: str, batch: str) -> bool:
    """Run it; whether it succeeded."""
    definitions: dg.Definitions = import_module(module).defs
    job = definitions.resolve_job_def(f"{workflow}_process_batch")
    with dg.DagsterInstance.get() as instance:
        return job.execute_in_process(instance=instance, partition_key=batch, raise_on_error=False).success


if __name__ == "__main__":
    sys.exit(0 if run_job(*sys.argv[1:4]) else 1)
