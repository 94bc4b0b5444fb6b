"""What the ledger tells of one request, with the documents that its hashes name."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from policies.approval import review_hash
from policies.audit import verify_chain
from policies.hashing import PARAMETERS, PROPOSAL, canonical_bytes, domain_hash
from policies.states import TERMINAL
from resources.store.chains import request_chain
from resources.store.reading import reading

ENDINGS = frozenset(state.value for state in TERMINAL)


@dataclass(frozen=True)
class Told:
    """One event of the ledger."""

    at: datetime
    type: str
    payload: dict[str, Any]

    @property
    def ends(self) -> bool:
        """Whether the request ended here."""
        return self.payload.get("state") in ENDINGS


@dataclass(frozen=True)
class ActionOf:
    """One action of a proposal as it was sealed; `target` says whom it reaches, by adapter and account."""

    revision: int
    action_id: str
    type: str
    parameters: dict[str, Any]
    target: str

    @property
    def parameters_hash(self) -> str:
        """The hash by which an effect names its parameters."""
        return domain_hash(PARAMETERS, canonical_bytes(self.parameters)).hex()

    @classmethod
    def all_in(cls, document: bytes) -> list[ActionOf]:
        """The actions in a sealed proposal or in a review document."""
        read = json.loads(document)
        return [
            cls(
                revision=read["revision"],
                action_id=one["action_id"],
                type=one["type"],
                parameters=one["parameters"],
                target=f"{one['adapter']} {one['target']}",
            )
            for one in read["actions"]
        ]


@dataclass(frozen=True)
class Story:
    """One request: its events in order, and by their hashes or names what they speak of."""

    request_id: UUID
    operation_id: str
    events: list[Told]
    proposed: dict[str, list[ActionOf]]
    """The actions of each proposal, by its hash."""
    shown: dict[str, list[ActionOf]]
    """The actions as a reviewer was shown them, by the approval request's id."""
    expires_at: dict[str, datetime]
    effects: dict[str, tuple[str, str]]
    """Kind and action id of each effect, by its key."""

    @property
    def ended(self) -> bool:
        """Whether nothing more happens to it."""
        return any(event.ends for event in self.events)

    def executed(self, key: str) -> ActionOf:
        """The action whose parameters the last start of this effect named; its proposal must hold exactly those."""
        start = [one.payload for one in self.events if one.type == "effect.started" and one.payload["key"] == key][-1]
        [action] = [
            one
            for one in self.proposed[start["proposal"]]
            if one.action_id == self.effects[key][1] and one.parameters_hash == start["parameters"]
        ]
        return action


def read_story(database_url: str, request_id: UUID) -> Story:
    """The story of a request. Its chain must hold, and each document must be the one that its hash names."""
    with reading(database_url, seconds=60) as connection:
        chain = request_chain(connection, request_id)
        found = verify_chain(chain.stream, chain.events, chain.head)
        assert found.intact, f"{chain.stream}: {found.damage} at {found.bad_seq}"
        one = {"id": request_id}
        proposals = connection.execute(
            sa.text("select canonical, hash from proposals where request_id = :id and kind = 'proposal'"), one
        ).all()
        asked = connection.execute(
            sa.text(
                "select id, review_document, review_hash, expires_at from approval_requests where request_id = :id"
            ),
            one,
        ).all()
        effects = connection.execute(
            sa.text("select idempotency_key, kind, action_id from effects_v where request_id = :id"), one
        ).all()
        operation_id = connection.execute(
            sa.text("select operation_id from requests_v where request_id = :id"), one
        ).scalar_one()
    for row in proposals:
        assert domain_hash(PROPOSAL, row.canonical) == row.hash
    for row in asked:
        assert review_hash(row.review_document) == row.review_hash
    return Story(
        request_id=request_id,
        operation_id=operation_id,
        events=[Told(event.at, event.type, json.loads(event.payload)) for event in chain.events],
        proposed={row.hash.hex(): ActionOf.all_in(row.canonical) for row in proposals},
        shown={str(row.id): ActionOf.all_in(row.review_document) for row in asked},
        expires_at={str(row.id): row.expires_at for row in asked},
        effects={row.idempotency_key: (row.kind, row.action_id) for row in effects},
    )
