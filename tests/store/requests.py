"""Requests as tests need them: written as the superuser, along legal transitions, without running a job."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import sqlalchemy as sa

from policies.hashing import PROPOSAL, REVIEW, canonical_bytes, domain_hash
from policies.strict_json import JSON
from tests.postgres import Database

DAY = "2026-01-01"


@dataclass(frozen=True)
class Person:
    """A principal and its token."""

    id: uuid.UUID
    name: str
    token: str


@dataclass(frozen=True)
class AskedRequest:
    """A request that waits for a vote."""

    id: uuid.UUID
    operation_id: str
    approval_id: uuid.UUID
    proposal_hash: bytes
    review_hash: bytes
    parameters: bytes
    """Canonical bytes of its one action's parameters."""


class Superuser:
    """Writes what the roles under test may not."""

    def __init__(self, database: Database) -> None:
        self.engine = sa.create_engine(
            database.url(), poolclass=sa.NullPool, connect_args={"options": "-c search_path=failsafe"}
        )
        self.run(
            "insert into workflows (name, batch_kind, batch_zone, since) values ('refunds', 'day', 'UTC', '2026-01-01')"
        )

    def run(self, statement: str, **values: object) -> None:
        """Execute one statement in a transaction of its own."""
        with self.engine.begin() as connection:
            connection.execute(sa.text(statement), values)

    def value(self, statement: str, **values: object) -> object:
        """The single value that a query gives."""
        with self.engine.begin() as connection:
            return connection.execute(sa.text(statement), values).scalar_one()

    def row(self, statement: str, **values: object) -> sa.Row[Any]:
        """The single row that a query gives."""
        with self.engine.begin() as connection:
            return connection.execute(sa.text(statement), values).one()

    def person(
        self, name: str, roles: Sequence[str] = (), *, kind: str = "human", external_id: str | None = None
    ) -> Person:
        """A new principal."""
        with self.engine.begin() as connection:
            made = connection.execute(
                sa.text(
                    "select principal_id, token from create_principal(:kind, :name, :external, cast(:roles as text[]))"
                ),
                {"kind": kind, "name": name, "external": external_id, "roles": list(roles)},
            ).one()
        return Person(made.principal_id, name, made.token)

    def received(self, initiator: Person, operation_id: str = "order-1", *, subject: str | None = None) -> uuid.UUID:
        """A request as intake leaves it."""
        request_id = uuid.uuid4()
        payload = json.dumps({"order_id": operation_id, "amount": "60.00 EUR"}).encode()
        self.run(
            "insert into requests (id, workflow, workflow_version, operation_id, initiator, subject,"
            " authorization_context, payload, payload_fingerprint, batch_key, next_eligible_at, trace_id, received_at)"
            " values (:id, 'refunds', '1', :operation_id, :initiator, :subject, '{}', :payload, :fingerprint, :day,"
            " clock_timestamp(), :trace, clock_timestamp())",
            id=request_id,
            operation_id=operation_id,
            initiator=initiator.id,
            subject=subject,
            payload=payload,
            fingerprint=sha256(payload).digest(),
            day=DAY,
            trace=request_id.hex,
        )
        return request_id

    def asked(
        self,
        initiator: Person,
        operation_id: str = "order-1",
        *,
        roles: Sequence[str] = ("support_lead",),
        quorum: int = 1,
        subject: str | None = None,
        parties: Sequence[str] = (),
        seconds: float = 3600,
        document: dict[str, JSON] | None = None,
    ) -> AskedRequest:
        """A request that waits for votes for `seconds`; `subject` and `parties` are external ids that may not vote."""
        request_id = self.received(initiator, operation_id, subject=subject)
        canonical = canonical_bytes(_proposal(request_id, operation_id))
        proposal_hash = domain_hash(PROPOSAL, canonical)
        shown = canonical_bytes(
            {**(document or {}), "request_id": str(request_id), "proposal_hash": proposal_hash.hex()}
        )
        asked = AskedRequest(
            id=request_id,
            operation_id=operation_id,
            approval_id=uuid.uuid4(),
            proposal_hash=proposal_hash,
            review_hash=domain_hash(REVIEW, shown),
            parameters=canonical_bytes(_parameters(operation_id)),
        )
        self.run(
            "insert into proposals (request_id, revision, kind, output, canonical, hash, model, prompt_version)"
            " values (:id, 1, 'proposal', '{}', :canonical, :hash, 'test', '1')",
            id=request_id,
            canonical=canonical,
            hash=proposal_hash,
        )
        self.move(request_id, "proposal_recorded", "proposal_ready")
        self.move(request_id, "approval_required", "awaiting_approval")
        self.run(
            "insert into approval_requests (id, request_id, revision, round, proposal_hash, review_document,"
            " review_hash, tier, roles, quorum, excluded, excluded_people, opened_at, expires_at)"
            " values (:approval, :id, 1, 1, :proposal_hash, :document, :review_hash, 'medium', :roles, :quorum,"
            " array[cast(:initiator as uuid)], cast(:people as text[]), clock_timestamp(),"
            " clock_timestamp() + make_interval(secs => :seconds))",
            approval=asked.approval_id,
            id=request_id,
            proposal_hash=proposal_hash,
            document=shown,
            review_hash=asked.review_hash,
            roles=list(roles),
            quorum=quorum,
            initiator=initiator.id,
            people=[person for person in (subject, *parties) if person is not None],
            seconds=seconds,
        )
        self.run(
            "update requests set approval_id = :approval where id = :id", approval=asked.approval_id, id=request_id
        )
        return asked

    def move(self, request_id: uuid.UUID, event: str, state: str) -> None:
        """Take one transition."""
        self.run(
            "update requests set state = :state, last_event = :event, state_seq = state_seq + 1 where id = :id",
            state=state,
            event=event,
            id=request_id,
        )

    def state(self, request_id: uuid.UUID) -> object:
        """Where a request stands."""
        return self.value("select state from requests where id = :id", id=request_id)


def _proposal(request_id: uuid.UUID, order_id: str) -> dict[str, JSON]:
    return {
        "request_id": str(request_id),
        "revision": 1,
        "workflow": "refunds",
        "workflow_version": "1",
        "catalogue": "0" * 64,
        "sources": {},
        "actions": [_action(order_id)],
    }


def _parameters(order_id: str) -> JSON:
    return {"order_id": order_id, "amount": {"minor": 6000, "currency": "EUR"}}


def _action(order_id: str) -> JSON:
    return {
        "action_id": "1:order.refund",
        "type": "order.refund",
        "parameters": _parameters(order_id),
        "evidence": [],
        "rationale": "",
        "confidence": None,
        "adapter": "Payments",
        "target": "0" * 64,
    }
