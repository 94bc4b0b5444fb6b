"""Delegation: lending a role of one's own for a time. It never reaches further than the lender's own rights."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import sqlalchemy as sa

from policies.errors import RequestRefused
from resources.store.engine import Duty, engine_for, transaction
from resources.store.operator import said
from resources.store.queries import query
from resources.store.votes import Session


@dataclass(frozen=True, slots=True)
class Delegation:
    """One loan of a role. `in_force`: its time is now, it was not taken back, its lender still holds the role."""

    id: UUID
    role: str
    lender: str
    borrower: str
    starts_at: datetime
    ends_at: datetime
    reason: str
    revoked_at: datetime | None
    in_force: bool


def delegate(
    database_url: str,
    session: Session,
    role: str,
    to: str,
    *,
    until: datetime,
    reason: str,
    starting: datetime | None = None,
) -> UUID:
    """Lend a role of the session's holder to the principal named `to`, from `starting` (default: now); returns its id.

    Whoever votes by it votes in the lender's place, so that lender and borrowers together are one voice.

    Raises:
        NotPermitted: the session's holder has not this role.
        NotPossibleNow: it is lent to this person already, for a time that overlaps.
        RequestRefused: there is no such enabled person, the time has no zone, is over or longer than 90 days, or the
            reason is missing.
    """
    for instant in (starting, until):
        if instant is not None and instant.tzinfo is None:
            raise RequestRefused(f"{instant} has no time zone; write it as 2026-11-30T18:00+01:00")
    arguments = {
        "session": session.secret,
        "to": to,
        "role": role,
        "starting": starting,
        "until": until,
        "reason": said("reason", reason),
    }
    with transaction(engine_for(Duty.REVIEWER, database_url)) as connection:
        made: UUID = connection.execute(query("delegate_role"), arguments).scalar_one()
    return made


def delegations(database_url: str, session: Session) -> list[Delegation]:
    """The loans that the session's holder gave or got, the latest first; for an operator all."""
    with transaction(engine_for(Duty.REVIEWER, database_url)) as connection:
        rows = connection.execute(query("list_delegations"), {"session": session.secret})
        return [Delegation(*row) for row in rows]


def take_back(database_url: str, session: Session, delegation_id: UUID) -> bool:
    """End a loan now, as its lender or an operator; False if there is none to end. Votes by it no longer count."""
    with transaction(engine_for(Duty.REVIEWER, database_url)) as connection:
        ended: bool = connection.execute(
            sa.text("select revoke_delegation(:session, :id)"), {"session": session.secret, "id": delegation_id}
        ).scalar_one()
    return ended
