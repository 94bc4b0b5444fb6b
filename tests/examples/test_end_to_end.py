"""The made-up day through asset, job, store and sandbox provider, as a deployment runs it."""

from __future__ import annotations

import json
import time
from collections import Counter
from datetime import date
from pathlib import Path

import dagster as dg
import pytest
import sqlalchemy as sa

from examples.expenses.definitions import defs, receipts
from examples.expenses.sample import Claim, claims, write
from examples.expenses.workflow import expenses
from resources.store.engine import Duty, engine_for
from resources.store.principals import create_principal
from tests.examples.conftest import REIMBURSE, TOKENS, Sandbox
from tests.postgres import Database

TODAY = date(2026, 11, 29)
ENDS = {
    "ordinary": {"completed": 96},
    "duplicate": {"completed": 8, "awaiting_approval": 8},
    "two scans": {"completed": 6, "awaiting_approval": 6},
    "over the cap": {"awaiting_approval": 20},
    "high": {"awaiting_approval": 6},
    "foreign currency": {"awaiting_approval": 8},
    "far too high": {"rejected": 4},
    "hostile": {"completed": 14},
    "NUL": {"completed": 3},
    "lone surrogate": {"not accepted": 2},
    "bidi": {"completed": 3},
    "emoji": {"completed": 4},
    "long line": {"completed": 3},
    "old": {"rejected": 10},
    "missing total": {"needs_review": 10},
    "unknown employee": {"needs_review": 5},
    "inactive employee": {"rejected": 5},
    "closed budget": {"rejected": 5},
}


def states(url: str) -> dict[str, str]:
    """The state of each request by its operation."""
    with engine_for(Duty.AUDITOR, url).connect() as connection:
        rows = connection.execute(sa.text("select operation_id, state from requests_v"))
        return {row.operation_id: row.state for row in rows}


def run_job(batch: str) -> bool:
    """One run of the workflow's job on a batch."""
    job = defs.resolve_job_def("expenses_process_batch")
    return job.execute_in_process(partition_key=batch, raise_on_error=False).success


@pytest.fixture
def store(database: Database, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """The URL of a store; the environment is that of a code location with a file of claims to hand in."""
    url = database.url()
    intake = create_principal(url, kind="service", name="expense app", roles=["expense_intake"])
    write(tmp_path / "claims.jsonl", today=TODAY)
    for name, value in {
        **TOKENS,
        "SANDBOX_URL": sandbox.url,
        "FAILSAFE_DATABASE_URL": url,
        "FAILSAFE_LEASE_SECONDS": "5",
        "FAILSAFE_BACKOFF_SECONDS": "2",
        "EXPENSES_INTAKE_TOKEN": intake.token,
        "EXPENSES_FILE": str(tmp_path / "claims.jsonl"),
    }.items():
        monkeypatch.setenv(name, value)
    return url


def test_every_claim_ends_where_its_kind_says_and_every_effect_happens_once(store: str, sandbox: Sandbox) -> None:
    """Handed in twice, advanced by several runs, with answers lost: nothing is doubled, nothing missing."""
    before = len(sandbox.ledger()["rows"])
    sandbox.faults(drop_after_effect=5)
    assert dg.materialize([receipts]).success
    assert dg.materialize([receipts]).success
    with engine_for(Duty.AUDITOR, store).connect() as connection:
        batch = connection.execute(sa.text("select distinct batch_key from requests_v")).scalar_one()
    deadline = time.monotonic() + 60
    while set(states(store).values()) & {"received", "proposal_ready", "executing"} and time.monotonic() < deadline:
        assert run_job(batch)

    found = states(store)
    ends: dict[str, Counter[str]] = {}
    for claim in claims(today=TODAY):
        ends.setdefault(claim.kind, Counter())[found.get(claim.row["operation_id"], "not accepted")] += 1
    blurry = ends.pop("blurry")
    assert ends == ENDS
    assert set(blurry) <= {"completed", "needs_review", "rejected"}

    rows = sandbox.ledger()["rows"][before:]
    completed = sum(state == "completed" for state in found.values())
    assert Counter(row["path"] for row in rows) == dict.fromkeys(
        ("/budget/reserve", REIMBURSE, "/employee/notify"), completed
    )
    assert len({row["key"] for row in rows}) == len(rows)
    assert Counter(paid(row["body"]) for row in rows if row["path"] == REIMBURSE) == Counter(
        owed(claim) for claim in claims(today=TODAY) if found.get(claim.row["operation_id"]) == "completed"
    )


def paid(body: str) -> tuple[str, str, int]:
    """Whom a payment reached, on which account, and how much."""
    sent = json.loads(body)
    return sent["employee_id"], sent["account"], sent["amount"]["minor"]


def owed(claim: Claim) -> tuple[str, str, int]:
    """Who is owed what, by the HR record and the real purchase."""
    employee = claim.row["payload"]["employee_id"]
    record = expenses.records["employees"].find(employee)
    assert record is not None
    return employee, record.fields["account"], claim.bought.total
