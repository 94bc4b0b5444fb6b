"""Approval requests with limits, escalations and a past, and people who decide and lend by the reviewer's login."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa

from policies.audit import verify_chain
from policies.hashing import PROPOSAL, canonical_bytes, domain_hash
from resources.store.approvals import announce_waiting, expire_approvals
from resources.store.chains import batch_chains
from resources.store.delegations import delegate, take_back
from resources.store.engine import Duty, engine_for, transaction
from resources.store.queries import query
from resources.store.votes import Session, Tally, cast_vote, sign_in
from tests.postgres import Database
from tests.store.released import Worker
from tests.store.requests import DAY, AskedRequest, Person

LEAD, DIRECTOR = "support_lead", "director"


class Asking:
    """One store on which people are asked. Everything a reviewer does is done with the reviewer's login alone."""

    def __init__(self, database: Database) -> None:
        self.url = database.url()
        self.reviewer = database.url("failsafe_reviewer")
        self.operator = database.url("failsafe_operator")
        self.worker = Worker(database)
        self.superuser = self.worker.superuser
        self._sessions: dict[uuid.UUID, Session] = {}
        self._names = 0

    def person(self, *roles: str, external_id: str | None = None, kind: str = "human") -> Person:
        """Somebody new."""
        self._names += 1
        return self.superuser.person(f"person {self._names}", roles, external_id=external_id, kind=kind)

    def session(self, person: Person) -> Session:
        """The person's session, made once."""
        if person.id not in self._sessions:
            self._sessions[person.id] = sign_in(self.reviewer, person.token)
        return self._sessions[person.id]

    def ask(
        self,
        *,
        escalations: Sequence[Mapping[str, Any]] = (),
        remind_after: float | None = None,
        amounts: Sequence[Mapping[str, Any]] = (),
        initiator: Person | None = None,
        **asked: Any,
    ) -> AskedRequest:
        """A request that waits for a lead, by default for an hour."""
        made = self.superuser.asked(initiator or self.person(LEAD), f"order-{uuid.uuid4()}", **asked)
        if not (escalations or remind_after or amounts):
            return made
        self._change(
            made,
            "escalations = cast(:escalations as json), amounts = cast(:amounts as json),"
            " remind_after = make_interval(secs => :remind)",
            escalations=json.dumps(list(escalations)),
            amounts=json.dumps(list(amounts)),
            remind=remind_after,
        )
        return made

    def age(self, asked: AskedRequest, seconds: float) -> None:
        """Let so much time pass for one approval request."""
        self._change(
            asked,
            "opened_at = opened_at - make_interval(secs => :age),"
            " expires_at = expires_at - make_interval(secs => :age)",
            age=seconds,
        )

    def _change(self, asked: AskedRequest, assignments: str, **values: object) -> None:
        """Change what never changes, as nobody but a superuser can."""
        with self.superuser.engine.begin() as connection:
            connection.execute(sa.text("alter table approval_requests disable trigger user"))
            connection.execute(
                sa.text(f"update approval_requests set {assignments} where id = :approval"),
                {"approval": asked.approval_id, **values},
            )
            connection.execute(sa.text("alter table approval_requests enable trigger user"))

    def vote(self, voter: Person, asked: AskedRequest, vote: str = "approve", **changed: Any) -> Tally:
        """Vote on what was asked, but for what is `changed`."""
        arguments: dict[str, Any] = {
            "approval_id": asked.approval_id,
            "vote": vote,
            "proposal_hash": asked.proposal_hash,
            "review_hash": asked.review_hash,
            **changed,
        }
        return cast_vote(self.reviewer, self.session(voter), **arguments)

    def edit(self, editor: Person, asked: AskedRequest) -> int:
        """Change the amount of what was asked; returns the new revision."""
        stored: Any = self.superuser.value(
            "select canonical from proposals where request_id = :id and revision = 1", id=asked.id
        )
        document = json.loads(stored) | {"revision": 2}
        document["actions"][0]["parameters"]["amount"]["minor"] = 1
        canonical = canonical_bytes(document)
        arguments = {
            "session": self.session(editor).secret,
            "approval": asked.approval_id,
            "proposal_hash": asked.proposal_hash,
            "review_hash": asked.review_hash,
            "output": b"{}",
            "canonical": canonical,
            "hash": domain_hash(PROPOSAL, canonical),
            "reason": "typo",
        }
        with transaction(engine_for(Duty.REVIEWER, self.reviewer)) as connection:
            revision: int = connection.execute(query("record_edit"), arguments).scalar_one()
        return revision

    def lend(
        self, lender: Person, to: Person, role: str = LEAD, *, hours: float = 1, starts_in: float = 0
    ) -> uuid.UUID:
        """Lend a role for some hours."""
        starts = datetime.now(UTC) + timedelta(hours=starts_in)
        return delegate(
            self.reviewer,
            self.session(lender),
            role,
            to.name,
            starting=starts,
            until=starts + timedelta(hours=hours),
            reason="on leave",
        )

    def take_back(self, by: Person, loan: uuid.UUID) -> bool:
        """End a loan."""
        return take_back(self.reviewer, self.session(by), loan)

    def announce(self) -> int:
        """What a worker's pass announces."""
        with transaction(engine_for(Duty.WORKER, self.url)) as connection:
            return announce_waiting(connection, "refunds", DAY, 500)

    def expire(self) -> int:
        """What a worker's pass expires."""
        with transaction(engine_for(Duty.WORKER, self.url)) as connection:
            return expire_approvals(connection, "refunds", DAY, 500)

    def events(self, asked: AskedRequest) -> list[str]:
        """The types of the request's ledger events in their order."""
        return [kind for kind, _ in self.ledger(asked)]

    def ledger(self, asked: AskedRequest) -> list[tuple[str, dict[str, Any]]]:
        """Type and payload of the request's ledger events in their order."""
        with self.superuser.engine.begin() as connection:
            rows = connection.execute(
                sa.text("select type, payload from audit_v where stream = :stream order by seq"),
                {"stream": f"request:{asked.id}"},
            ).all()
        return [(row.type, json.loads(row.payload)) for row in rows]

    def outbox(self, asked: AskedRequest) -> list[tuple[str, dict[str, Any]]]:
        """What consumers are told of a request, in its order."""
        with self.superuser.engine.begin() as connection:
            rows = connection.execute(
                sa.text("select type, payload from outbox where aggregateid = :id order by aggregate_seq"),
                {"id": str(asked.id)},
            )
            return [(row.type, row.payload) for row in rows]

    def outcome(self, asked: AskedRequest) -> object:
        """How the approval request was resolved; None: it was not."""
        return self.superuser.value(
            "select max(outcome) from approval_resolutions where approval_id = :id", id=asked.approval_id
        )

    def state(self, asked: AskedRequest) -> object:
        """Where the request stands."""
        return self.superuser.state(asked.id)

    def assert_ledgers_intact(self) -> None:
        """Every chain of the batch verifies."""
        with engine_for(Duty.AUDITOR, self.url).connect() as connection:
            for chain in batch_chains(connection, "refunds", DAY):
                found = verify_chain(chain.stream, chain.events, chain.head)
                assert found.intact, f"{chain.stream}: {found.damage} at {found.bad_seq}"
