"""From what a receipt states to what is proposed."""

from __future__ import annotations

import dagster_failsafe as fs
from examples.expenses.actions import Expense, NotifyEmployee, Reimburse, ReserveBudget
from examples.expenses.extractor import read
from examples.expenses.reading import Reading


class ReceiptReader:
    """Proposes the reimbursement of what the receipt states; abstains where it does not state it surely."""

    deterministic = True
    model = "receipt rules 1"

    def __call__(self, expense: Expense) -> fs.Proposal | fs.Abstention:
        """The three actions, each value with its quote."""
        reading = read(expense.receipt)
        if reading.total is None or reading.date is None:
            return fs.Abstention(f"no {'total' if reading.total is None else 'date'} on the receipt is certain enough")
        if reading.currency is None and "$" in reading.total.quote:
            return fs.Abstention("the receipt does not say which dollars it means")
        currency = reading.currency.value if reading.currency else expense.currency
        try:
            amount = fs.Money.parse(f"{reading.total.value} {currency}")
        except ValueError:
            return fs.Abstention(f"{reading.total.value} is no amount of {currency}")
        quoted = [fs.Evidence("amount", "receipt", reading.total.quote), *_currency_quote(reading)]
        payment = fs.propose(
            Reimburse,
            employee_id=expense.employee_id,
            amount=amount,
            receipt_date=reading.date.value,
            handed_in=expense.handed_in,
            merchant=reading.merchant and reading.merchant.value,
            evidence=[
                *quoted,
                fs.Evidence("receipt_date", "receipt", reading.date.quote),
                fs.Evidence("handed_in", "handed_in", expense.handed_in.isoformat()),
                *_merchant_quote(reading),
            ],
            rationale=f"total: {', '.join(reading.total.checks)}; date: {', '.join(reading.date.checks)}",
        )
        return fs.Proposal(
            (
                fs.propose(ReserveBudget, budget=expense.budget, amount=amount, evidence=quoted),
                payment,
                fs.propose(NotifyEmployee, employee_id=expense.employee_id, amount=amount, evidence=quoted),
            )
        )


def _currency_quote(reading: Reading) -> list[fs.Evidence]:
    return [fs.Evidence("amount", "receipt", reading.currency.quote)] if reading.currency else []


def _merchant_quote(reading: Reading) -> list[fs.Evidence]:
    """A name that the receipt breaks over two lines stands nowhere as one text, so nothing is quoted for it."""
    merchant = reading.merchant
    return [fs.Evidence("merchant", "receipt", merchant.quote)] if merchant and "\n" not in merchant.quote else []
