"""The workflow that is measured: one small request, one quoted payment, released automatically."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Annotated, Any, ClassVar

import dagster as dg

from policies.actions import Action, Authority, Request
from policies.batches import daily
from policies.money import Money
from policies.outcomes import Done, Semantics
from policies.proposals import Evidence, Proposal, propose
from resources.adapters.base import Adapter
from resources.adapters.sql import SqlAdapter
from resources.workflow import Workflow
from workflow_assets.batch_job import batch_job

WORKFLOW_VARIABLE = "FAILSAFE_BENCH_WORKFLOW"
"""Names the workflow of a run's process."""

PROVIDER_VARIABLE = "FAILSAFE_BENCH_PROVIDER_URL"
"""Address of the database that plays the provider."""

ROLE = "clerk"
"""The role that may initiate a payment."""

AMOUNT = "12.50 EUR"


class PaymentRequest(Request):
    """Pay an amount for an order."""

    order: str
    amount: str


class Pay(Action, name="order.pay", reversible=False, sensitivity="financial"):
    """The payment, as it is quoted in the request."""

    order: str
    amount: Annotated[Money, Authority()]


class Instant(Adapter):
    """A provider in the process that answers at once."""

    semantics: ClassVar[Semantics] = Semantics(honours_key=timedelta(days=30), lookup=True, concurrency=1)

    def execute(self, action: Pay, key: str) -> Done:  # noqa: ARG002  # every payment succeeds
        """Pays nothing and says so."""
        return Done("paid")

    def look_up(self, key: str) -> None:
        """Remembers nothing."""


def quoted_payment(request: PaymentRequest) -> Proposal:
    """Proposes what the request says."""
    quote = Evidence("amount", "amount", request.amount)
    return Proposal((propose(Pay, order=request.order, amount=request.amount, evidence=[quote]),))


quoted_payment.deterministic = True  # type: ignore[attr-defined]  # an extractor carries its traits as attributes


def provider() -> SqlAdapter:
    """A provider that costs one round trip and one commit a payment, on a connection of its own."""
    pay = "insert into payments (order_name, minor, currency) values (:order, :amount_minor, :amount_currency)"
    return SqlAdapter(
        url=dg.EnvVar(PROVIDER_VARIABLE),
        statements={"order.pay": f"{pay} returning id::text as reference"},
        concurrency=1,
    )


PROVIDER_TABLE = (
    "create table payments (id bigint generated always as identity, order_name text, minor bigint, currency text)"
)


def workflow(name: str) -> Workflow:
    """The workflow under a name: `provider` pays through the SQL adapter, every other name through `Instant`."""
    adapter = provider() if name == "provider" else Instant()
    return Workflow(
        name=name,
        version="1",
        request=PaymentRequest,
        actions={Pay: adapter},
        extractor=quoted_payment,
        policy=Path(__file__).with_name("policy.yaml"),
        batches=daily(since=date(2026, 1, 1)),
    )


def job() -> dg.JobDefinition:
    """The batch job of the workflow that the environment names."""
    return batch_job(workflow(os.environ[WORKFLOW_VARIABLE]))


def rows(count: int, prefix: str = "order") -> Iterator[dict[str, Any]]:
    """Requests to submit."""
    for number in range(count):
        name = f"{prefix}-{number}"
        yield {"operation_id": name, "payload": {"order": name, "amount": AMOUNT}}
