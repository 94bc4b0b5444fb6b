"""Voting: a reviewer signs in with a token and votes, with that session alone, on the two hashes of what was shown."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal
from uuid import UUID

from policies.errors import VoteRefused
from resources.store.engine import Duty, engine_for, transaction
from resources.store.moves import plain_text
from resources.store.queries import query

Vote = Literal["approve", "deny"]

MAX_REASON = 2_000
"""Characters of a vote's reason."""


@dataclass(frozen=True, slots=True)
class Session:
    """A reviewer signed in until `expires_at`."""

    secret: str = field(repr=False)
    principal_id: UUID
    name: str
    roles: list[str]
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class Tally:
    """Where an approval request stands after a vote: `open`, `released` or `denied`."""

    outcome: str
    votes_for: int
    votes_needed: int


def sign_in(database_url: str, token: str) -> Session:
    """Exchange a principal's token for a session of eight hours.

    Raises:
        NotAuthenticated: the token is unknown or its principal disabled.
    """
    with transaction(engine_for(Duty.REVIEWER, database_url)) as connection:
        return Session(*connection.execute(query("sign_in"), {"token": token}).one())


def cast_vote(
    database_url: str,
    session: Session,
    *,
    approval_id: UUID,
    vote: Vote,
    proposal_hash: bytes,
    review_hash: bytes,
    reason: str = "",
) -> Tally:
    """Cast one vote on what was shown: the proposal and the review document with these hashes.

    Raises:
        VoteRefused: resolved already, expired, changed since it was shown, or voted on before; `code` says which.
        NotPermitted: this principal may not decide here (role, or it is initiator, subject or payee, or a service).
        NotAuthenticated: the session ended or its principal was disabled.
        RequestRefused: there is no such approval request.
    """
    if len(reason) > MAX_REASON:
        raise VoteRefused("reason", f"the reason is {len(reason)} characters long; say it in {MAX_REASON}")
    arguments = {
        "session": session.secret,
        "approval": approval_id,
        "vote": vote,
        "proposal_hash": proposal_hash,
        "review_hash": review_hash,
        "reason": plain_text(reason, MAX_REASON),
    }
    with transaction(engine_for(Duty.REVIEWER, database_url)) as connection:
        return Tally(*connection.execute(query("cast_vote"), arguments).one())
