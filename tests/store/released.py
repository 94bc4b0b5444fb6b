"""Released requests under a worker's lease, made without running a job: what `start_effects` is asked to start."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from policies.effects import EffectState
from policies.hashing import PARAMETERS, PROPOSAL, REVIEW, canonical_bytes, domain_hash
from policies.strict_json import JSON
from resources.store.effects import Outcome, Start, Started, record_outcomes, start_effects
from resources.store.engine import Duty, engine_for, transaction
from resources.store.votes import cast_vote, sign_in
from tests.postgres import Database
from tests.store.requests import Person, Superuser

REFUND = ("order.refund",)
SAGA = ("stock.reserve", "order.refund", "customer.tell")


@dataclass(frozen=True)
class ReleasedRequest:
    """A request in `executing`, leased under `token` and just rechecked."""

    id: uuid.UUID
    token: uuid.UUID
    proposal_hash: bytes
    parameters_hashes: tuple[bytes, ...]
    approval_id: uuid.UUID | None
    clerk: Person

    def start(self, ordinal: int = 1) -> Start:
        """What a worker asks to start its action with."""
        return Start(self.id, ordinal, self.parameters_hashes[ordinal - 1], {"undo": None})


class Worker:
    """Makes released requests, each with people of its own, and does with them what a worker may."""

    def __init__(self, database: Database) -> None:
        self.url = database.url()
        self.superuser = Superuser(database)
        self._people = itertools.count(1)

    def person(self, role: str) -> Person:
        """Somebody new who holds this role."""
        return self.superuser.person(f"{role} {next(self._people)}", [role])

    def released(
        self,
        *,
        actions: Sequence[str] = REFUND,
        decision: str = "auto",
        mode: str = "live",
        voters: Sequence[Person] = (),
        quorum: int = 1,
        expires_in: float = 3600,
    ) -> ReleasedRequest:
        """A request that was released: automatically, or by these voters in time (`decision="review"`)."""
        clerk = self.person("clerk")
        request_id = self.superuser.received(clerk, clerk.name)
        parameters: list[JSON] = [{"order_id": clerk.name, "amount": f"{at}.00 EUR"} for at, _ in enumerate(actions)]
        canonical = canonical_bytes(_proposal(request_id, actions, parameters))
        proposal_hash = domain_hash(PROPOSAL, canonical)
        self.superuser.run(
            "insert into proposals (request_id, revision, kind, output, canonical, hash, model, prompt_version)"
            " values (:id, 1, 'proposal', '{}', :canonical, :hash, 'test', '1')",
            id=request_id,
            canonical=canonical,
            hash=proposal_hash,
        )
        self.superuser.run(
            "insert into assessments (request_id, revision, round, tier, decision, mode, reasons, demand,"
            " policy_version, policy_hash) values (:id, 1, 1, 'low', :decision, :mode, '[]',"
            " case when :decision = 'review' then cast('{}' as json) end, '1', sha256(''))",
            id=request_id,
            decision=decision,
            mode=mode,
        )
        self.superuser.move(request_id, "proposal_recorded", "proposal_ready")
        approval_id = None
        if decision == "review":
            approval_id = self._ask(request_id, clerk, proposal_hash, quorum, expires_in)
            for voter in voters:
                self.vote(voter, approval_id)
        else:
            self.superuser.move(request_id, "auto_released", "executing")
        hashes = tuple(domain_hash(PARAMETERS, canonical_bytes(one)) for one in parameters)
        released = ReleasedRequest(request_id, uuid.uuid4(), proposal_hash, hashes, approval_id, clerk)
        until = "clock_timestamp() + interval '30 s'"
        self.change(
            released, f"lease_token = :token, lease_until = {until}, rechecked_until = {until}", token=released.token
        )
        return released

    def vote(self, voter: Person, approval_id: uuid.UUID) -> None:
        """Approve what is asked, as this person."""
        asked = self.superuser.row(
            "select proposal_hash, review_hash from approval_requests where id = :id", id=approval_id
        )
        cast_vote(
            self.url,
            sign_in(self.url, voter.token),
            approval_id=approval_id,
            vote="approve",
            proposal_hash=asked.proposal_hash,
            review_hash=asked.review_hash,
        )

    def start(self, request: ReleasedRequest, *starts: Start, token: uuid.UUID | None = None) -> list[Started]:
        """Start these effects, by default the first one, under the request's lease or another one."""
        with transaction(engine_for(Duty.WORKER, self.url)) as connection:
            return start_effects(connection, token or request.token, "Payments", starts or [request.start()])

    def refusal(self, request: ReleasedRequest, start: Start | None = None) -> str | None:
        """Why the database does not start this, by default the first action; None where it did."""
        (answer,) = self.start(request, *([start] if start else []))
        return answer.refusal

    def record(
        self, request: ReleasedRequest, started: Started, state: EffectState, token: uuid.UUID | None = None
    ) -> set[str]:
        """Record one outcome under the request's lease or another one; the keys that were taken."""
        outcome = Outcome(started.request_id, started.ordinal, started.key, state, "reference")
        with transaction(engine_for(Duty.WORKER, self.url)) as connection:
            return record_outcomes(connection, token or request.token, [outcome])

    def change(self, request: ReleasedRequest, assignments: str, **values: object) -> None:
        """Change columns of the request as nobody else may."""
        self.superuser.run(f"update requests set {assignments} where id = :id", id=request.id, **values)

    def tamper(self, table: str, assignments: str, request: ReleasedRequest) -> None:
        """Change what never changes, as only somebody with the superuser's rights can: with the triggers disabled."""
        rows = "approval_id = :approval" if table == "approval_votes" else "request_id = :id"
        with self.superuser.engine.begin() as connection:
            connection.execute(sa.text(f"alter table {table} disable trigger user"))
            connection.execute(
                sa.text(f"update {table} set {assignments} where {rows}"),
                {"approval": request.approval_id} if table == "approval_votes" else {"id": request.id},
            )
            connection.execute(sa.text(f"alter table {table} enable trigger user"))

    def untouched(self, request: ReleasedRequest) -> bool:
        """Nothing of it was started and its approval not consumed."""
        begun = self.superuser.value("select count(*) from effects where request_id = :id", id=request.id)
        return begun == 0 and self.consumed_at(request) is None

    def consumed_at(self, request: ReleasedRequest) -> object:
        """When its approval was consumed."""
        statement = "select max(consumed_at) from approval_resolutions where approval_id = :id"
        return self.superuser.value(statement, id=request.approval_id)

    def effect(self, request: ReleasedRequest, ordinal: int = 1) -> sa.Row[Any]:
        """One effect as it is stored."""
        return self.superuser.row(
            "select * from effects where request_id = :id and ordinal = :ordinal", id=request.id, ordinal=ordinal
        )

    def events(self, request: ReleasedRequest) -> list[tuple[str, str]]:
        """Type and payload of the request's ledger events, in their order."""
        with self.superuser.engine.begin() as connection:
            rows = connection.execute(
                sa.text("select type, payload from audit_v where stream = :stream order by seq"),
                {"stream": f"request:{request.id}"},
            )
            return [(row.type, row.payload) for row in rows]

    def _ask(
        self, request_id: uuid.UUID, clerk: Person, proposal_hash: bytes, quorum: int, expires_in: float
    ) -> uuid.UUID:
        approval_id, document = uuid.uuid4(), canonical_bytes({"request_id": str(request_id)})
        self.superuser.move(request_id, "approval_required", "awaiting_approval")
        self.superuser.run(
            "insert into approval_requests (id, request_id, revision, round, proposal_hash, review_document,"
            " review_hash, tier, roles, quorum, excluded, excluded_people, opened_at, expires_at)"
            " values (:approval, :id, 1, 1, :proposal_hash, :document, :review_hash, 'medium', '{lead}', :quorum,"
            " array[cast(:initiator as uuid)], '{}', clock_timestamp(),"
            " clock_timestamp() + make_interval(secs => :seconds))",
            approval=approval_id,
            id=request_id,
            proposal_hash=proposal_hash,
            document=document,
            review_hash=domain_hash(REVIEW, document),
            quorum=quorum,
            initiator=clerk.id,
            seconds=expires_in,
        )
        self.superuser.run(
            "update requests set approval_id = :approval where id = :id", approval=approval_id, id=request_id
        )
        return approval_id


def _proposal(request_id: uuid.UUID, actions: Sequence[str], parameters: Sequence[JSON]) -> dict[str, JSON]:
    return {
        "request_id": str(request_id),
        "revision": 1,
        "actions": [
            {
                "action_id": f"{ordinal}:{kind}",
                "type": kind,
                "parameters": values,
                "adapter": "Payments",
                "target": "0" * 64,
            }
            for ordinal, (kind, values) in enumerate(zip(actions, parameters, strict=True), start=1)
        ],
    }
