"""The rounds in which people were asked about a request, with their votes: what was decided stays readable for good."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from resources.store.engine import Duty, engine_for, transaction
from resources.store.queries import query
from resources.store.votes import Vote


@dataclass(frozen=True, slots=True)
class CastVote:
    """One vote as it stands."""

    voter_id: UUID
    voter: str
    vote: Vote
    reason: str
    cast_at: datetime
    proposal_hash: bytes
    review_hash: bytes


@dataclass(frozen=True, slots=True)
class Round:
    """One approval request of a request; `outcome` is `open` only while votes are taken."""

    approval_id: UUID
    revision: int
    round: int
    tier: str
    roles: list[str]
    quorum: int
    opened_at: datetime
    expires_at: datetime
    outcome: str
    resolved_at: datetime | None
    consumed_at: datetime | None
    proposal_hash: bytes
    review_hash: bytes
    votes: tuple[CastVote, ...]

    def vote_of(self, principal_id: UUID) -> CastVote | None:
        """What this principal said, if anything."""
        return next((one for one in self.votes if one.voter_id == principal_id), None)


def read_rounds(database_url: str, request_id: UUID) -> list[Round]:
    """All rounds of a request, the latest first."""
    with transaction(engine_for(Duty.AUDITOR, database_url)) as connection:
        rows = connection.execute(query("rounds_of_request"), {"request_id": request_id}).all()
    return [_round(row) for row in rows]


def _round(row: sa.Row[Any]) -> Round:
    return Round(
        approval_id=row.approval_id,
        revision=row.revision,
        round=row.round,
        tier=row.tier,
        roles=row.roles,
        quorum=row.quorum,
        opened_at=row.opened_at,
        expires_at=row.expires_at,
        outcome=row.outcome,
        resolved_at=row.resolved_at,
        consumed_at=row.consumed_at,
        proposal_hash=bytes.fromhex(row.proposal_hash),
        review_hash=bytes.fromhex(row.review_hash),
        votes=tuple(map(_vote, row.votes)),
    )


def _vote(one: Mapping[str, Any]) -> CastVote:
    return CastVote(
        voter_id=UUID(one["voter_id"]),
        voter=one["voter"],
        vote=one["vote"],
        reason=one["reason"],
        cast_at=datetime.fromisoformat(one["cast_at"]),
        proposal_hash=bytes.fromhex(one["proposal_hash"]),
        review_hash=bytes.fromhex(one["review_hash"]),
    )
