"""What somebody who is signed in may look at, and why they may not vote."""

from __future__ import annotations

from uuid import UUID

import sqlalchemy as sa

from resources.store.engine import Duty, engine_for, transaction


def may_see(database_url: str, session_secret: str, request_id: UUID) -> bool:
    """Whether the holder of the session decides on, is kept from, or submitted this request, or oversees all of them.

    Raises:
        NotAuthenticated: the session is over.
    """
    with transaction(engine_for(Duty.REVIEWER, database_url)) as connection:
        seen: bool = connection.execute(
            sa.text("select may_see(:session, :request)"), {"session": session_secret, "request": request_id}
        ).scalar_one()
    return seen


def vote_obstacle(database_url: str, session_secret: str, approval_id: UUID) -> str | None:
    """Why the holder of the session may not vote on this approval request; None: they may, while it is open.

    Raises:
        NotAuthenticated: the session is over.
    """
    with transaction(engine_for(Duty.REVIEWER, database_url)) as connection:
        obstacle: str | None = connection.execute(
            sa.text("select vote_obstacle(:session, :approval)"), {"session": session_secret, "approval": approval_id}
        ).scalar_one()
    return obstacle
