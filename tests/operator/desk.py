"""An operator's desk at the shop: signed in, with the requests called by their operation ids."""

from __future__ import annotations

from uuid import UUID

import sqlalchemy as sa

from policies.compensation import recovery
from policies.sealing import unseal
from policies.states import State
from resources.store import operator, pauses
from resources.store.claim import FIRST, Lease, claim
from resources.store.effects import Start, Started, start_effects
from resources.store.engine import Duty, engine_for, transaction
from resources.store.operator import Cancelled, Leaving
from resources.store.pauses import Reach, Scope
from resources.store.votes import Session
from tests.ops import toy
from tests.ops.passes import Shop

WHY = "told so by the customer"
EVIDENCE = "seen in the provider's own list"


class Desk:
    """What the operator `olga` does; `as_` another who signed in does the same."""

    def __init__(self, shop: Shop) -> None:
        self.shop = shop
        self.session = self.signed_in("olga", ["operator"])

    def signed_in(self, name: str, roles: list[str]) -> Session:
        """The session of a new person."""
        return self.sign_in(toy.principal(self.shop.url, name, roles, kind="human"))

    def sign_in(self, token: str) -> Session:
        """The session of who has this token."""
        return operator.sign_in(self.shop.url, token)

    def id(self, operation_id: str) -> UUID:
        """The request's id."""
        found: UUID = self.shop.request(operation_id).id
        return found

    def cancel(self, operation_id: str, as_: Session | None = None) -> Cancelled:
        """Cancel a request."""
        return operator.cancel(self.shop.url, as_ or self.session, self.id(operation_id), WHY)

    def redrive(self, *operation_ids: str, dry_run: bool = False, as_: Session | None = None) -> list[Leaving]:
        """Redrive requests."""
        ids = [self.id(one) for one in operation_ids]
        return operator.redrive(self.shop.url, as_ or self.session, ids, WHY, dry_run=dry_run)

    def discard(self, *operation_ids: str, dry_run: bool = False, as_: Session | None = None) -> list[Leaving]:
        """Give requests up."""
        ids = [self.id(one) for one in operation_ids]
        return operator.discard(self.shop.url, as_ or self.session, ids, WHY, dry_run=dry_run)

    def resolve(self, key: str, *, done: bool, evidence: str = EVIDENCE, as_: Session | None = None) -> None:
        """Say what became of an effect."""
        operator.resolve_unknown(self.shop.url, as_ or self.session, key, done=done, evidence=evidence)

    def pause(self, scope: Scope, name: str = pauses.EVERYTHING, as_: Session | None = None) -> Reach:
        """Pause a scope."""
        return pauses.pause(self.shop.url, as_ or self.session, scope, name, WHY)

    def resume(self, scope: Scope, name: str = pauses.EVERYTHING) -> bool:
        """Lift a pause."""
        return pauses.resume(self.shop.url, self.session, scope, name, WHY)

    def effect(self, action_type: str) -> sa.Row[tuple[object, ...]]:
        """The one effect of an action type."""
        return self.shop.row("select * from effects where action_type = :type", type=action_type)

    def open_cases(self) -> list[str]:
        """The failures of open dead letters."""
        return [row.failure for row in self.shop.rows("select failure from dead_letters where closed_at is null")]

    def claimed(self, state: State = State.EXECUTING) -> Lease:
        """A lease on everything that is due in a state."""
        return claim(
            engine_for(Duty.WORKER, self.shop.url),
            workflow=self.shop.workflow.name,
            batch=self.shop.batch,
            state=state,
            opened_at=self.shop.row("select clock_timestamp() as now").now,
            after=FIRST,
            limit=1000,
            length=self.shop.open().lease_length,
        )

    def start(self, lease: Lease, start: Start) -> Started:
        """Try to start one effect under a lease."""
        provider = self.shop.workflow.catalogue.entries["order.refund"].adapter
        with transaction(engine_for(Duty.WORKER, self.shop.url)) as connection:
            [started] = start_effects(connection, lease.token, provider, [start])
        return started

    def first_start(self, operation_id: str) -> Start:
        """What starts the first action of a request."""
        request_id = self.id(operation_id)
        row = self.shop.row("select canonical from proposals where request_id = :id", id=request_id)
        first = unseal(row.canonical, self.shop.workflow.catalogue).actions[0]
        return Start(request_id, first.ordinal, first.parameters_hash, recovery(first.action_type, first.values))
