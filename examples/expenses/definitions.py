"""What Dagster loads: the workflow, and the asset that feeds it."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import dagster as dg

import dagster_failsafe as fs
from examples.expenses.sample import read_rows, rows
from examples.expenses.workflow import expenses


@dg.asset
def receipts() -> dg.MaterializeResult[None]:
    """Hands in the receipts of `EXPENSES_FILE` (JSON Lines), or a made-up day of them. Repeating it doubles nothing."""
    file = os.environ.get("EXPENSES_FILE")
    found = read_rows(Path(file)) if file else rows(today=datetime.now(UTC).date())
    handed_in = fs.submit(found, workflow=expenses, principal=dg.EnvVar("EXPENSES_INTAKE_TOKEN"))
    return dg.MaterializeResult(metadata={"in": len(handed_in.receipts), "refused": len(handed_in.problems)})


defs = dg.Definitions.merge(fs.definitions(expenses), dg.Definitions(assets=[receipts]))
