"""What an operator does to running and parked work: each act under the operator's own session, in one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal
from uuid import UUID

import sqlalchemy as sa

from policies.errors import RequestRefused
from resources.store.engine import Duty, engine_for, transaction
from resources.store.moves import plain_text
from resources.store.queries import query
from resources.store.votes import Session

MAX_REASON = 500
"""Characters of a reason or of evidence: both stand in the ledger and beside what they explain."""


class Cancelled(StrEnum):
    """What a cancellation came to."""

    CANCELLED = "cancelled"  # no effect was begun, and none will be
    COMPENSATING = "compensating"  # what was done is being undone
    UNCERTAIN = "uncertain"  # an effect is under way: no other starts, and its outcome decides


@dataclass(frozen=True, slots=True)
class Leaving:
    """One parked request that was to be redriven or discarded. `obstacle`: why it stays; None: it goes."""

    request_id: UUID
    obstacle: str | None
    left_done: list[str]
    """Keys of effects that are done and not undone: a redrive keeps them, a discard leaves them so."""


def sign_in(database_url: str, token: str) -> Session:
    """Exchange a principal's token for a session of eight hours, by the operator's login.

    Raises:
        NotAuthenticated: the token is unknown or its principal disabled.
    """
    with transaction(engine_for(Duty.OPERATOR, database_url)) as connection:
        return Session(*connection.execute(query("sign_in"), {"token": token}).one())


def cancel(database_url: str, session: Session, request_id: UUID, reason: str) -> Cancelled:
    """Decide against execution, as the request's initiator or as an operator. Asking again changes nothing.

    Raises:
        NotPermitted: neither initiator nor operator; or it is parked, and no operator.
        NotPossibleNow: too late, or somebody has to resolve an effect first.
        RequestRefused: there is no such request.
    """
    arguments = {"session": session.secret, "request_id": request_id, "reason": said("reason", reason)}
    with transaction(engine_for(Duty.OPERATOR, database_url)) as connection:
        answer = connection.execute(sa.text("select cancel_request(:session, :request_id, :reason)"), arguments)
        return Cancelled(answer.scalar_one())


def redrive(
    database_url: str, session: Session, request_ids: Sequence[UUID], reason: str, *, dry_run: bool
) -> list[Leaving]:
    """Begin a new governed attempt of dead-lettered requests: every judgement and approval again, no old authority.

    Done effects stay done and are not repeated. Raises NotPermitted, NotAuthenticated.
    """
    return _leave(database_url, "redrive_requests", session, request_ids, reason, dry_run)


def discard(
    database_url: str, session: Session, request_ids: Sequence[UUID], reason: str, *, dry_run: bool
) -> list[Leaving]:
    """Give parked requests up, or close the case of one that has ended. Raises NotPermitted, NotAuthenticated."""
    return _leave(database_url, "discard_requests", session, request_ids, reason, dry_run)


def _leave(
    database_url: str,
    function: Literal["redrive_requests", "discard_requests"],
    session: Session,
    request_ids: Sequence[UUID],
    reason: str,
    dry_run: bool,
) -> list[Leaving]:
    arguments = {
        "session": session.secret,
        "ids": list(request_ids),
        "reason": said("reason", reason),
        "dry_run": dry_run,
    }
    with transaction(engine_for(Duty.OPERATOR, database_url)) as connection:
        return [Leaving(*row) for row in connection.execute(query(function), arguments)]


def resolve_unknown(database_url: str, session: Session, key: str, *, done: bool, evidence: str) -> UUID:
    """Say, with evidence, what became of an unknown or late effect; returns its request's id.

    Done: it counts, and the request goes on from there. Not done: its key is never sent again; a redrive sends the
    action under a new one.

    Raises:
        NotPermitted: no operator.
        NotPossibleNow: the effect is neither unknown nor late.
        RequestRefused: there is no such effect, or the evidence is too short to be any.
    """
    arguments = {"session": session.secret, "key": key, "done": done, "evidence": said("evidence", evidence)}
    with transaction(engine_for(Duty.OPERATOR, database_url)) as connection:
        statement = sa.text("select resolve_unknown(:session, :key, :done, :evidence)")
        resolved: UUID = connection.execute(statement, arguments).scalar_one()
        return resolved


def resolve_compensation(database_url: str, session: Session, request_id: UUID, evidence: str) -> None:
    """Say, with evidence, that what a failed compensation left was restored by hand; the request is compensated.

    Raises:
        NotPermitted: no operator.
        NotPossibleNow: no compensation of it failed, or an effect of it is unknown.
        RequestRefused: there is no such request, or the evidence is too short to be any.
    """
    arguments = {"session": session.secret, "request_id": request_id, "evidence": said("evidence", evidence)}
    with transaction(engine_for(Duty.OPERATOR, database_url)) as connection:
        connection.execute(sa.text("select resolve_compensation(:session, :request_id, :evidence)"), arguments)


def said(what: str, text: str) -> str:
    """A person's reason or evidence as it is stored.

    Raises:
        RequestRefused: it is empty or too long.
    """
    if not text.strip():
        raise RequestRefused(f"say the {what}: it stands in the ledger")
    if len(text) > MAX_REASON:
        raise RequestRefused(f"the {what} is {len(text)} characters long; say it in {MAX_REASON}")
    return plain_text(text, MAX_REASON)
