"""A workflow as a user writes it, against the public module only; `make check` reads it with the strict checker."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

import dagster as dg

import dagster_failsafe as fs


class RefundRequest(fs.Request):
    """One customer's wish."""

    order_id: str
    message: Annotated[str, fs.Untrusted]


class Release(fs.Action, name="stock.release", reversible=False):
    """Gives reserved stock back."""

    order_id: Annotated[str, fs.Authority(record="orders")]


class Reserve(fs.Action, name="stock.reserve", reversible=True, undo=Release):
    """Keeps stock for an exchange."""

    order_id: Annotated[str, fs.Authority(record="orders")]


class Refund(fs.Action, name="order.refund", reversible=False, sensitivity="financial"):
    """Pays an order back."""

    order_id: Annotated[str, fs.Authority(record="orders")]
    amount: Annotated[fs.Money, fs.Authority(record="orders")]


class Orders(fs.Records):
    """The shop's own books."""

    def find(self, key: str) -> fs.Record | None:
        """One order."""
        amount = fs.Money.parse("48.20 EUR")
        return fs.Record(record="orders", key=key, fields={"amount": amount}) if key == "o-1" else None


class Payments(fs.Adapter):
    """The payment provider."""

    semantics = fs.Semantics(honours_key=timedelta(days=30), lookup=True, visible_after=timedelta(0))
    url: str
    token: fs.Secret

    def execute(self, action: Refund, key: str) -> fs.Done | fs.Refused:
        """Pays."""
        if action.amount.minor <= 0:
            return fs.Refused("not_positive")
        return fs.Done(reference=f"{self.url}/{key}", result={"amount": str(action.amount)})

    def look_up(self, key: str) -> fs.Done | None:
        """Finds a payment."""
        return None


class Stock(fs.Adapter):
    """The warehouse."""

    semantics = fs.Semantics()
    url: str

    def execute(self, action: Reserve | Release, key: str) -> fs.Done:
        """Reserves or releases."""
        return fs.Done(key)


def extract(request: RefundRequest) -> fs.Proposal | fs.Abstention:
    """Refunds whoever asks for it; the order decides how much."""
    if "refund" not in request.message:
        return fs.Abstention("no wish for a refund")
    quote = fs.Evidence("order_id", "order_id", request.order_id)
    return fs.Proposal((fs.propose(Refund, order_id=request.order_id, evidence=(quote,)),))


refunds = fs.Workflow(
    name="refunds",
    version="1",
    request=RefundRequest,
    extractor=extract,
    actions={
        Refund: Payments(url="https://pay.example", token=dg.EnvVar("PAY_TOKEN")),
        Reserve: Stock(url="https://stock.example"),
    },
    records={"orders": Orders()},
    policy="refunds.yaml",
    batches=fs.daily(since="2026-11-01"),
)
