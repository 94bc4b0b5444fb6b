"""The world of one schedule: a workflow of its own in a store, its providers' books, its people, and its time."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from ops.batch import Batch, Counts, WorkflowRun, open_pass
from ops.process_batch import STEPS
from policies.errors import NotAuthenticated, NotPermitted, VoteRefused
from policies.states import OPEN
from resources.store import batches, operator
from resources.store.engine import Duty, engine_for, transaction
from resources.store.intake import submit_rows
from resources.store.votes import Session, cast_vote, sign_in
from resources.workflow import Workflow
from tests.faults.ledger import Effect, Ledger
from tests.faults.plan import Fate, Planned
from tests.faults.workflow import orders_workflow, policy_file, policy_text

MOST_PASSES = 20
"""Passes without faults after which everything must be settled: more than any request has attempts."""


@dataclass(frozen=True)
class Place:
    """Where schedules run, one after the other: a store and the bank's database on one server, and a folder."""

    url: str
    bank_url: str
    folder: Path

    def connect(self, url: str = "") -> sa.Engine:
        """Connections that no duty binds, to the store or to the database at `url`."""
        return sa.create_engine(
            url or self.url, poolclass=sa.NullPool, connect_args={"options": "-c search_path=failsafe,public"}
        )


def _statement(name: str) -> str:
    return (Path(__file__).parent / "sql" / f"{name}.sql").read_text()


@dataclass
class World:
    """One schedule's own; `name` tells it from all others in its place."""

    place: Place
    name: str
    lease_seconds: float = 30.0
    with_bank: bool = True
    keyed_url: str = ""
    planned: list[Planned] = field(default_factory=list)
    batch: str = ""

    def __post_init__(self) -> None:
        self.folder = self.place.folder / self.name
        self.folder.mkdir(parents=True)
        self.ledger = Ledger(str(self.folder / "books.sqlite"))
        self.ledger.create()
        self._superuser = self.place.connect()
        self.set_policy(policy_text(with_bank=self.with_bank))
        self.workflow = self.define()
        self.clerk = self.principal("clerk", "service", ["clerk"])
        self.lead = self.session("lead", ["lead"])
        self.chief = self.session("chief", ["operator"])
        # Breakers and credits of earlier schedules are none of this one's business.
        self.execute("delete from providers")

    # -- people and policy

    def define(self) -> Workflow:
        """The workflow, as every process of the schedule has it."""
        return orders_workflow(self.name, self.folder, self.keyed_url, with_bank=self.with_bank)

    def set_policy(self, text: str) -> None:
        """Put a policy in force, at once and whole."""
        unfinished = self.folder / "policy.new"
        unfinished.write_text(text)
        unfinished.replace(policy_file(self.folder))

    def person(self, role: str) -> str:
        """The name of somebody in this schedule."""
        return f"{role} of {self.name}"

    def principal(self, role: str, kind: str, roles: Sequence[str]) -> str:
        """A new principal's token."""
        with transaction(engine_for(Duty.OPERATOR, self.place.url)) as connection:
            token: str = connection.execute(
                sa.text("select token from create_principal(:kind, :name, null, :roles)"),
                {"kind": kind, "name": self.person(role), "roles": list(roles)},
            ).scalar_one()
        return token

    def session(self, role: str, roles: Sequence[str]) -> Session:
        """A new person, signed in."""
        return sign_in(self.place.url, self.principal(role, "human", roles))

    # -- the store

    def execute(self, statement: str, **values: object) -> None:
        """Execute a statement that no duty and no trigger binds."""
        with self._superuser.begin() as connection:
            connection.execute(sa.text("set local session_replication_role = replica"))
            connection.execute(sa.text(statement), {"workflow": self.name, **values})

    def rows(self, statement: str, **values: object) -> list[sa.Row[Any]]:
        """All rows of a query that no duty binds; `:workflow` is this schedule's."""
        with self._superuser.begin() as connection:
            return list(connection.execute(sa.text(statement), {"workflow": self.name, **values}))

    def change(self, name: str, **values: object) -> None:
        """Execute a statement of `sql/`; `:workflow` is this schedule's."""
        self.execute(_statement(name), **values)

    def named(self, name: str) -> list[sa.Row[Any]]:
        """All rows of a query of `sql/`."""
        return self.rows(_statement(name))

    def submit(self, planned: Iterable[Planned]) -> None:
        """Submit orders, each under its own name."""
        new = list(planned)
        self.planned += new
        self.submit_payloads({one.order: one.payload for one in new})

    def submit_payloads(self, payloads: Mapping[str, Mapping[str, str]]) -> None:
        """Submit payloads by operation id."""
        rows = [{"operation_id": name, "payload": payload} for name, payload in payloads.items()]
        submission = submit_rows(rows, workflow=self.workflow, principal=self.clerk, database_url=self.place.url)
        submission.raise_for_problems()
        self.batch = submission.receipts[0].batch_key

    def states(self) -> dict[str, str]:
        """State of every request by its operation id."""
        return {
            row.operation_id: row.state
            for row in self.rows("select operation_id, state from requests where workflow = :workflow")
        }

    def open(self) -> bool:
        """Whether anything may still happen by itself or by a vote."""
        return any(state in OPEN for state in self.states().values())

    def vote(self) -> None:
        """Decide on everything that waits, as each order's fate is."""
        fates = {one.order: one.fate for one in self.planned}
        for row in self.named("waiting"):
            fate = fates.get(row.operation_id, Fate.APPROVED)
            if fate is Fate.UNANSWERED:
                continue
            with suppress(
                VoteRefused, NotPermitted, NotAuthenticated
            ):  # it was resolved meanwhile, or this schedule took the right away
                cast_vote(
                    self.place.url,
                    self.lead,
                    approval_id=row.id,
                    vote="deny" if fate is Fate.DENIED else "approve",
                    proposal_hash=row.proposal_hash,
                    review_hash=row.review_hash,
                )

    def cancel(self, operation_id: str) -> operator.Cancelled:
        """Cancel a request, as an operator."""
        (row,) = self.rows("select id from requests where workflow = :workflow and operation_id = :id", id=operation_id)
        return operator.cancel(self.place.url, self.chief, row.id, "the customer called")

    # -- time

    def let_time_pass(self) -> None:
        """An hour passes: all waits, leases and calls are over, and every effect shows. Nobody may be working."""
        for what in ("waits_pass", "leases_end", "calls_end", "providers_rest"):
            self.change(what)
        self.ledger.let_time_pass()

    def expire(self) -> None:
        """The time of every unanswered approval is over."""
        self.change("approvals_expire")

    # -- passes

    def run(self) -> WorkflowRun:
        """What a pass of this process is given."""
        return WorkflowRun(self.workflow, self.place.url, lease_seconds=self.lease_seconds)

    def one_pass(self, steps: Sequence[Callable[[Batch], Counts]] = STEPS) -> Counter[str]:
        """One pass of a new run, without faults, in this process."""
        opened = open_pass(self.run(), self.batch, f"run-{uuid.uuid4()}")
        moved = Counts()
        for step in steps:
            moved += opened.carry_out(step)
        with transaction(opened.engine) as connection:
            batches.close_run(connection, self.name, self.batch, opened.run_id)
        return moved

    def recover(self) -> int:
        """Clean passes until nothing is due, with people voting and time passing in between; returns how many."""
        for number in range(1, MOST_PASSES + 1):
            self.let_time_pass()
            self.one_pass()
            self.vote()
            states = Counter(self.states().values())
            if not any(states[state] for state in ("received", "proposal_ready", "executing", "compensating")):
                if not states["awaiting_approval"]:
                    return number
                self.expire()
        return MOST_PASSES

    # -- the providers

    def effects(self) -> Counter[Effect]:
        """How often each business effect of this schedule happened, by the providers' own books."""
        found = self.ledger.effects()
        orders = [one.order for one in self.planned]
        if self.with_bank and orders:
            with self.place.connect(self.place.bank_url).connect() as connection:
                statement = sa.text("select type, order_id from payments where order_id = any(:orders)")
                found.update((row.type, row.order_id) for row in connection.execute(statement, {"orders": orders}))
        return found
