"""Receipts become reimbursements: reserve the budget, pay the employee, tell them."""

from __future__ import annotations

from pathlib import Path

import dagster as dg

import dagster_failsafe as fs
from examples.expenses.actions import Expense, NotifyEmployee, Reimburse, ReserveBudget
from examples.expenses.reader import ReceiptReader
from examples.expenses.records import FileRecords

RECORDS = Path(__file__).with_name("records.yaml")


def _sandbox(paths: dict[str, str], token: str) -> fs.HttpAdapter:
    """One service of the sandbox provider, with a secret of its own."""
    return fs.HttpAdapter(
        url=dg.EnvVar("SANDBOX_URL"),
        token=dg.EnvVar(token),
        hosts=["127.0.0.1", "localhost"],
        paths=paths,
        look_up_path="/effects/{key}",
        refused_field="refused",
        key_kept_hours=24 * 365,
        timeout_seconds=2,  # a lease may be as short as five seconds, and no call may outlast one
        concurrency=8,
    )


expenses = fs.Workflow(
    name="expenses",
    version="1",
    request=Expense,
    extractor=ReceiptReader(),
    records={"employees": FileRecords("employees", RECORDS), "budgets": FileRecords("budgets", RECORDS)},
    actions={
        ReserveBudget: _sandbox(
            {"budget.reserve": "/budget/reserve", "budget.release": "/budget/release"}, "SANDBOX_BUDGET_TOKEN"
        ),
        Reimburse: _sandbox({"expense.reimburse": "/expense/reimburse"}, "SANDBOX_EXPENSE_TOKEN"),
        NotifyEmployee: _sandbox({"employee.notify": "/employee/notify"}, "SANDBOX_NOTIFY_TOKEN"),
    },
    policy="policy.yaml",
    batches=fs.daily(since="2026-11-01"),
    deps=("receipts",),
)
