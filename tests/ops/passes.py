"""A shop for tests of the steps: a store, a till, a workflow, and the people and passes that bring requests forward."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from ops.batch import Batch, Counts, WorkflowRun, open_pass
from ops.process_batch import STEPS
from policies.audit import verify_chain
from resources.store.chains import batch_chains
from resources.store.engine import Duty, engine_for
from resources.store.votes import Tally, Vote, cast_vote, sign_in
from resources.workflow import Workflow
from tests.ops import toy
from tests.ops.tills import MOMENTS, Hook, HookedTill, handled_by, hook
from tests.postgres import Database

Payload = dict[str, str]


def refund(amount: str = "20.00", order: str = "A1", **more: str) -> Payload:
    """The payload of one refund request."""
    return {"order_id": order, "text": f"TOTAL {amount} EUR", **more}


class Shop:
    """One workflow on one store, its provider's ledger, a clerk who submits and leads who vote."""

    def __init__(self, database: Database, folder: Path, policy: str = toy.POLICY) -> None:
        self.move_to(database)
        self.folder = folder
        self.till = toy.new_ledger(folder)
        self.workflow = toy.toy_workflow(folder, self.till, policy)
        self.use(HookedTill(file=str(self.till)))
        self.clerk = toy.principal(self.url, "shop", ["clerk"])
        self.batch = ""
        self.lease_seconds = 5.0
        self._leads: dict[str, str] = {}

    def move_to(self, database: Database) -> None:
        """Go on with another database, as after a restore; the providers know nothing of that."""
        self.url, self.database_name = database.url(), str(database.superuser.database)
        options = {"options": "-c search_path=failsafe"}
        self._superuser = sa.create_engine(database.url(), poolclass=sa.NullPool, connect_args=options)

    def define(self, **changes: Any) -> Workflow:
        """Change the definition: what the next pass runs."""
        self.workflow = replace(self.workflow, **changes)
        return self.workflow

    def use(self, till: toy.Till) -> None:
        """Give every action to this till."""
        self.workflow = handled_by(self.workflow, till)

    def hooked(self, till: type[HookedTill] = HookedTill, **hooks: Hook) -> None:
        """Give every action to a till that calls these hooks: `before`, `after`, `look_up`."""
        made = till(file=str(self.till))
        for moment in MOMENTS:
            hook(made, moment, hooks.get(moment))
        self.use(made)

    def set_policy(self, policy: str) -> None:
        """Put another policy in force."""
        self.workflow.policy_path.write_text(policy)

    def queue(self, payloads: Mapping[str, Payload]) -> None:
        """Submit requests by operation id."""
        self.batch = toy.queue(self.url, self.workflow, self.clerk, payloads)

    def open(self) -> Batch:
        """A new pass of a new run."""
        run = WorkflowRun(self.workflow, self.url, lease_seconds=self.lease_seconds)
        return open_pass(run, self.batch, f"run-{uuid.uuid4()}")

    def run(self, *steps: Callable[[Batch], Counts]) -> Counts:
        """One pass by all steps, or by these; returns what they counted."""
        return self.run_pass(self.open(), *steps)

    def run_pass(self, opened: Batch, *steps: Callable[[Batch], Counts]) -> Counts:
        """Carry an open pass out."""
        counts = Counts()
        for step in steps or STEPS:
            counts += opened.carry_out(step)
        return counts

    def run_again(self, passes: int = 1) -> None:
        """Let every wait pass and run, so many times."""
        for _ in range(passes):
            toy.make_due(self.url)
            self.run()

    def vote(self, operation_id: str, by: str = "lena", vote: Vote = "approve", **changed: Any) -> Tally:
        """Cast the vote of a lead (made here when new) on what is asked now, but for what is `changed`."""
        if by not in self._leads:
            self._leads[by] = toy.principal(self.url, by, ["lead"], kind="human")
        asked = self.row(
            "select a.id, a.proposal_hash, a.review_hash"
            " from approval_requests a join requests r on r.approval_id = a.id where r.operation_id = :id",
            id=operation_id,
        )
        arguments = {
            "approval_id": asked.id,
            "proposal_hash": asked.proposal_hash,
            "review_hash": asked.review_hash,
            **changed,
        }
        return cast_vote(self.url, sign_in(self.url, self._leads[by]), vote=vote, **arguments)

    def states(self) -> dict[str, str]:
        """State of every request by its operation id."""
        return toy.states(self.url)

    def request(self, operation_id: str) -> sa.Row[Any]:
        """A request as it is stored."""
        return self.row("select * from requests where operation_id = :id", id=operation_id)

    def execute(self, statement: str, **values: object) -> None:
        """Execute a statement that no duty binds, in a transaction of its own."""
        with self._superuser.begin() as connection:
            connection.execute(sa.text(statement), values)

    def rows(self, statement: str, **values: object) -> list[sa.Row[Any]]:
        """All rows of a query that no duty binds."""
        with self._superuser.begin() as connection:
            return list(connection.execute(sa.text(statement), values))

    def row(self, statement: str, **values: object) -> sa.Row[Any]:
        """The one row of a query."""
        (found,) = self.rows(statement, **values)
        return found

    def count(self, table: str) -> int:
        """How many rows a table has."""
        return len(self.rows(f"select from {table}"))

    def connect(self) -> sa.Connection:
        """A connection that no duty binds, to hold locks with; close it."""
        return self._superuser.connect()

    def end_leases(self) -> None:
        """Let every lease run out, as when its worker died."""
        self.execute(
            "update requests set lease_until = clock_timestamp() - interval '1 ms' where lease_token is not null"
        )

    def age_effects(self) -> None:
        """Let so much time pass that no call can be under way and every effect would show."""
        self.execute("update effects set started_at = started_at - interval '1 h'")

    def events(self, operation_id: str) -> list[str]:
        """The types of a request's ledger events, in their order."""
        return [kind for kind, _ in self.ledger(operation_id)]

    def ledger(self, operation_id: str) -> list[tuple[str, dict[str, Any]]]:
        """Type and payload of a request's ledger events, in their order."""
        found = self.rows(
            "select e.type, e.payload from audit_v e join requests r on e.stream = 'request:' || r.id"
            " where r.operation_id = :id order by e.seq",
            id=operation_id,
        )
        return [(row.type, json.loads(row.payload)) for row in found]

    def effects(self, action_type: str = "order.refund") -> list[str]:
        """Keys of the effects in the till's own ledger."""
        return toy.effects_at(self.till, action_type)

    def calls(self, action_type: str = "order.refund") -> list[str]:
        """Keys of the calls that reached the till."""
        return toy.calls_at(self.till, action_type)

    def assert_ledger_intact(self) -> None:
        """Every request's chain verifies without a gap, and tells every transition the request made."""
        with engine_for(Duty.AUDITOR, self.url).connect() as connection:
            chains = list(batch_chains(connection, self.workflow.name, self.batch))
        assert chains
        for chain in chains:
            found = verify_chain(chain.stream, chain.events, chain.head)
            assert found.intact, f"{chain.stream}: {found.damage} at {found.bad_seq}"
            assert [event.seq for event in chain.events] == list(range(1, len(chain.events) + 1))
