"""A small workflow for tests of the steps: refunds at a provider that keeps its ledger in a SQLite file."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from datetime import date, timedelta
from pathlib import Path
from typing import Annotated, ClassVar

import sqlalchemy as sa

from policies.actions import Action, Authority, Request
from policies.batches import daily
from policies.money import Money
from policies.outcomes import Done, Refused, Semantics
from policies.proposals import Abstention, Evidence, Proposal, propose
from policies.records import Record
from resources.adapters.base import Adapter
from resources.records import Records
from resources.store.engine import Duty, engine_for
from resources.store.intake import submit_rows
from resources.workflow import Workflow


class RefundRequest(Request):
    """What a customer asks for; `say` steers the toy model."""

    order_id: str
    text: str
    say: str = "refund"


class Unreserve(Action, name="stock.unreserve", reversible=False):
    """Undo of a reservation."""

    order_id: str


class Reserve(Action, name="stock.reserve", reversible=True, undo=Unreserve):
    """A step that can be undone."""

    order_id: Annotated[str, Authority(record="orders")]


class Refund(Action, name="order.refund", reversible=False, sensitivity="financial"):
    """The step that moves money."""

    order_id: Annotated[str, Authority(record="orders")]
    amount: Annotated[Money, Authority()]


class Tell(Action, name="customer.tell", reversible=False, notification=True):
    """Tells the customer."""

    order_id: Annotated[str, Authority(record="orders")]


class Orders(Records):
    """Every order exists but `gone`; `closed` is not active."""

    def find(self, key: str) -> Record | None:
        if key == "gone":
            return None
        return Record("orders", key, {"order_id": key}, active=key != "closed", reason="the order is closed")


class Till(Adapter):
    """Keeps one row a business effect, honours keys, can be looked up. `mood` in the file steers its faults."""

    semantics: ClassVar[Semantics] = Semantics(
        honours_key=timedelta(days=30), lookup=True, timeout=timedelta(seconds=1), concurrency=1
    )
    file: str

    def execute(self, action: Action, key: str) -> Done | Refused:
        with sqlite3.connect(self.file, timeout=10) as ledger:
            kind = action.action_type.name
            mood = ledger.execute("select mood from moods where type in (?, '*')", (kind,)).fetchone()
            ledger.execute("insert into calls (key, type) values (?, ?)", (key, kind))
            if mood and mood[0] == "refuse":
                return Refused("declined", "the till is closed to this")
            ledger.execute(
                "insert into effects (key, type, parameters) values (?, ?, ?) on conflict do nothing",
                (key, kind, json.dumps(action.model_dump(mode="json"))),
            )
            ledger.commit()
            if mood and mood[0] == "lose the answer":
                raise TimeoutError("no answer")
        return Done(f"till-{key[-12:]}")

    def look_up(self, key: str) -> Done | None:
        with sqlite3.connect(self.file, timeout=10) as ledger:
            found = ledger.execute("select key from effects where key = ?", (key,)).fetchone()
        return Done(f"till-{key[-12:]}") if found else None


def new_ledger(folder: Path) -> Path:
    """A new till ledger in `folder`."""
    path = folder / "till.sqlite"
    with sqlite3.connect(path) as ledger:
        ledger.executescript(
            "create table effects (key text primary key, type text, parameters text);"
            "create table calls (key text, type text);"
            "create table moods (type text primary key, mood text);"
        )
    return path


def set_mood(path: Path, mood: str | None, action_type: str = "*") -> None:
    """Make the till misbehave (`refuse`, `lose the answer`), or behave (None)."""
    with sqlite3.connect(path) as ledger:
        ledger.execute("delete from moods where type = ?", (action_type,))
        if mood:
            ledger.execute("insert into moods values (?, ?)", (action_type, mood))


def effects_at(path: Path, action_type: str = "order.refund") -> list[str]:
    """Keys of the effects of one type in the till's own ledger."""
    with sqlite3.connect(path) as ledger:
        return [key for (key,) in ledger.execute("select key from effects where type = ? order by key", (action_type,))]


def calls_at(path: Path, action_type: str = "order.refund") -> list[str]:
    """Keys of the calls of one type that reached the till."""
    with sqlite3.connect(path) as ledger:
        return [key for (key,) in ledger.execute("select key from calls where type = ? order by key", (action_type,))]


def toy_model(request: RefundRequest) -> Proposal | Abstention:
    """Does what `say` tells it: a refund of the amount in the text, several actions, an abstention, or nonsense."""
    if request.say == "abstain":
        return Abstention("cannot tell")
    if request.say == "nonsense":
        return {"actions": "yes"}  # type: ignore[return-value]  # a model may return anything
    order = Evidence("order_id", "order_id", request.order_id)
    quote = next((line for line in request.text.splitlines() if "EUR" in line), request.text)
    refund = propose(
        Refund,
        order_id=request.order_id,
        amount=quote.removeprefix("TOTAL "),
        evidence=[Evidence("amount", "text", quote), order],
    )
    if request.say == "saga":
        return Proposal(
            (
                propose(Tell, order_id=request.order_id, evidence=[order]),
                refund,
                propose(Reserve, order_id=request.order_id, evidence=[order]),
            )
        )
    return Proposal((refund,))


toy_model.deterministic = True  # type: ignore[attr-defined]  # extractors carry their traits as attributes

POLICY = """
version: "1"
mode: live
permissions: {order.refund: [clerk], stock.reserve: [clerk], customer.tell: [clerk]}
limits: {order.refund: 1000.00 EUR}
tiers:
  - {tier: medium, action: order.refund, over: 50.00 EUR, because: above the clerk's limit}
  - {tier: critical, action: order.refund, over: 500.00 EUR, because: never by a machine}
decisions:
  low: auto
  medium: {review: {roles: [lead], people: 1, expires_after: 2d}}
  high: {review: {roles: [lead], people: 2, expires_after: 1d}}
  critical: refuse
"""


def toy_workflow(folder: Path, ledger: Path, policy: str = POLICY, name: str = "refunds") -> Workflow:
    """The workflow with its policy file in `folder` and its provider's ledger in the file `ledger`."""
    path = folder / "policy.yaml"
    path.write_text(policy)
    till = Till(file=str(ledger))
    return Workflow(
        name=name,
        version="1",
        request=RefundRequest,
        actions={Refund: till, Reserve: till, Tell: till},
        extractor=toy_model,
        policy=path,
        batches=daily(since=date(2026, 1, 1)),
        records={"orders": Orders()},
    )


def principal(url: str, name: str, roles: list[str], kind: str = "service", external_id: str | None = None) -> str:
    """A new principal's token."""
    with engine_for(Duty.OPERATOR, url).begin() as connection:
        token: str = connection.execute(
            sa.text("select token from create_principal(:kind, :name, :external, :roles)"),
            {"kind": kind, "name": name, "external": external_id, "roles": roles},
        ).scalar_one()
    return token


def queue(url: str, workflow: Workflow, token: str, payloads: Mapping[str, dict[str, str]]) -> str:
    """Submit payloads by operation id; returns the batch key."""
    rows = [{"operation_id": operation_id, "payload": payload} for operation_id, payload in payloads.items()]
    return submit_rows(rows, workflow=workflow, principal=token, database_url=url).receipts[0].batch_key


def states(url: str) -> dict[str, str]:
    """State of every request by its operation id."""
    with engine_for(Duty.AUDITOR, url).connect() as connection:
        rows = connection.execute(sa.text("select operation_id, state from requests"))
        return {row.operation_id: row.state for row in rows}


def make_due(url: str) -> None:
    """Let the time of every wait pass."""
    with engine_for(Duty.WORKER, url).begin() as connection:
        connection.execute(sa.text("update requests set next_eligible_at = received_at"))
