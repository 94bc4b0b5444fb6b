"""What the workers under fault run: orders that are reserved, paid at one of four providers, and told of."""

from __future__ import annotations

import os
import signal
from datetime import date
from pathlib import Path
from typing import Annotated, Any

from policies.actions import Action, Authority, Request
from policies.batches import daily
from policies.money import Money
from policies.proposals import Abstention, Evidence, Proposal, ProposedAction, propose
from policies.records import Record
from resources.adapters.base import Adapter
from resources.records import Records
from resources.workflow import Workflow
from tests.faults.http_provider import over_http
from tests.faults.providers import Asked, Blind, Keyed, bank

Order = Annotated[str, Authority(record="orders")]
Amount = Annotated[Money, Authority()]


class OrderRequest(Request):
    """An order: `pay` names the provider, `steps` what is done beside."""

    order_id: str
    total: str
    pay: str
    steps: str = ""


class Unreserve(Action, name="stock.unreserve", reversible=False):
    """Undo of `Reserve`."""

    order_id: str


class Reserve(Action, name="stock.reserve", reversible=True, undo=Unreserve):
    """At the provider that honours keys."""

    order_id: Order


class Free(Action, name="seat.free", reversible=False):
    """Undo of `Hold`."""

    order_id: str


class Hold(Action, name="seat.hold", reversible=True, undo=Free):
    """At the provider that shares the transaction."""

    order_id: Order


class PayKeyed(Action, name="pay.keyed", reversible=False, sensitivity="financial"):
    """At the provider that honours keys."""

    order_id: Order
    amount: Amount


class PayShared(Action, name="pay.shared", reversible=False, sensitivity="financial"):
    """At the provider that shares the transaction."""

    order_id: Order
    amount: Amount


class PayAsked(Action, name="pay.asked", reversible=False, sensitivity="financial"):
    """At the provider that can only be asked."""

    order_id: Order
    amount: Amount


class PayBlind(Action, name="pay.blind", reversible=False, sensitivity="financial"):
    """At the provider that knows nothing."""

    order_id: Order
    amount: Amount


class Tell(Action, name="customer.tell", reversible=False, notification=True, on_unknown="assume_done"):
    """Tells the customer; nobody minds if it is lost."""

    order_id: Order


PAYMENTS: dict[str, type[Action]] = {"keyed": PayKeyed, "shared": PayShared, "asked": PayAsked, "blind": PayBlind}
STEPS: dict[str, type[Action]] = {"reserve": Reserve, "hold": Hold, "tell": Tell}


class Orders(Records):
    """Every order is known. The customer of `nul…` has an id that no text column of Postgres holds."""

    def find(self, key: str) -> Record | None:
        principal = "cust\x00omer" if key.startswith("nul") else None
        return Record("orders", key, {"order_id": key}, principal=principal)


def clerk(request: OrderRequest) -> Proposal | Abstention:
    """The model: it proposes what the order says; `steps` may also tell it to abstain, or to kill the process."""
    if request.steps == "abstain":
        return Abstention("cannot tell")
    if request.steps == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    order = Evidence("order_id", "order_id", request.order_id)
    amount = Evidence("amount", "total", request.total)
    proposed: list[ProposedAction] = [
        propose(
            PAYMENTS[request.pay],
            order_id=request.order_id,
            amount=request.total.split()[1] + " EUR",
            evidence=[amount, order],
        )
    ]
    proposed += [
        propose(STEPS[step], order_id=request.order_id, evidence=[order]) for step in request.steps.split(",") if step
    ]
    return Proposal(tuple(proposed))


clerk.deterministic = True  # type: ignore[attr-defined]  # extractors carry their traits as attributes
clerk.concurrency = 2  # type: ignore[attr-defined]

POLICY = """
version: "{version}"
mode: live
permissions: {{{permissions}}}
claims: {{order: [pay.keyed.order_id, pay.keyed.amount]}}
tiers:
  - {{tier: critical, claim: order, because: this order was paid before}}
{rules}
decisions:
  low: auto
  medium: {{review: {{roles: [lead], people: 1, expires_after: 2d}}}}
  high: {{review: {{roles: [lead], people: 2, expires_after: 2d}}}}
  critical: refuse
"""


def policy_text(version: str = "1", limit: int = 50, *, with_bank: bool = True) -> str:
    """A policy: payments over `limit` euros wait for a lead, over 500 they are refused."""
    kinds = [kind.action_type.name for kind in (*PAYMENTS.values(), *STEPS.values())]
    permitted = [kind for kind in kinds if with_bank or kind not in ("pay.shared", "seat.hold")]
    rules = "\n".join(
        f"  - {{tier: {tier}, action: {kind}, over: {over}.00 EUR, because: {because}}}"
        for kind in permitted
        if kind.startswith("pay.")
        for tier, over, because in (("medium", limit, "over the limit"), ("critical", 500, "never by a machine"))
    )
    permissions = ", ".join(f"{kind}: [clerk]" for kind in permitted)
    return POLICY.format(version=version, permissions=permissions, rules=rules)


def policy_file(folder: Path) -> Path:
    """Where a schedule's policy stands."""
    return folder / "policy.yaml"


def orders_workflow(name: str, folder: Path, keyed_url: str = "", *, with_bank: bool = True) -> Workflow:
    """The workflow of one schedule, its books and policy in `folder`.

    The provider that honours keys is reached by HTTP where it has a URL. Without the bank, whose calls may take long,
    leases may be short.
    """
    books = str(folder / "books.sqlite")
    keyed = over_http(keyed_url) if keyed_url else Keyed(file=books)
    actions: dict[type[Action], Adapter] = {
        Reserve: keyed,
        PayKeyed: keyed,
        PayAsked: Asked(file=books),
        PayBlind: Blind(file=books),
        Tell: Blind(file=books),
    }
    if with_bank:
        actions |= dict.fromkeys((Hold, PayShared), bank())
    definition: dict[str, Any] = {
        "name": name,
        "version": "1",
        "request": OrderRequest,
        "actions": actions,
        "extractor": clerk,
        "policy": policy_file(folder),
        "batches": daily(since=date(2026, 1, 1)),
        "records": {"orders": Orders()},
    }
    return Workflow(**definition)
