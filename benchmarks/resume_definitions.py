"""What Dagster loads while it is measured how soon a vote is carried out: six workflows, so six batches of today."""

from __future__ import annotations

from typing import Final

from benchmarks.workflow import workflow
from workflow_assets.definitions import definitions

WORKFLOWS: Final = tuple(workflow(f"resume_{number}") for number in range(1, 7))

defs = definitions(*WORKFLOWS)
