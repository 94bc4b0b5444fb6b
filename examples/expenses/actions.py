"""What is handed in, and what may be proposed for it."""

from __future__ import annotations

from datetime import date
from typing import Annotated

import dagster_failsafe as fs


class Expense(fs.Request):
    """One receipt that an employee hands in. `currency` is what is claimed where the receipt does not print one."""

    employee_id: str
    budget: str
    currency: str = "MYR"
    handed_in: date
    receipt: Annotated[str, fs.Untrusted]


Budget = Annotated[str, fs.Authority(record="budgets")]
Employee = Annotated[str, fs.Authority(record="employees")]
Amount = Annotated[fs.Money, fs.Authority()]


class ReleaseBudget(fs.Action, name="budget.release", reversible=False):
    """Gives back what was reserved."""

    budget: Budget
    amount: Amount


class ReserveBudget(fs.Action, name="budget.reserve", reversible=True, undo=ReleaseBudget):
    """Sets the amount aside."""

    budget: Budget
    amount: Amount


class Reimburse(fs.Action, name="expense.reimburse", reversible=False, sensitivity="financial"):
    """Pays the employee. The account is never proposed: it is filled from the HR record."""

    employee_id: Employee
    account: Annotated[str, fs.Authority(record="employees")]
    amount: Amount
    receipt_date: Annotated[date, fs.Authority()]
    handed_in: Annotated[date, fs.Authority()]
    merchant: str | None = None


class NotifyEmployee(fs.Action, name="employee.notify", reversible=False, sensitivity="personal", notification=True):
    """Tells the employee, at the address that HR knows."""

    employee_id: Employee
    email: Annotated[str, fs.Authority(record="employees")]
    amount: fs.Money
