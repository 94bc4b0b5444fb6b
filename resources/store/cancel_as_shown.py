"""Cancelling as somebody was told it would go: asked without changing anything, then done only if it still is so."""

from __future__ import annotations

from uuid import UUID

import sqlalchemy as sa

from policies.errors import NotPossibleNow
from resources.store.engine import Duty, engine_for, transaction
from resources.store.operator import Cancelled, said
from resources.store.votes import Session

_CANCEL = sa.text("select cancel_request(:session, :request_id, :reason)")


def cancel_outlook(database_url: str, session: Session, request_id: UUID) -> Cancelled:
    """What `cancel` would come to at this moment, found by doing and undoing it; raises what `cancel` would raise."""
    with transaction(engine_for(Duty.OPERATOR, database_url)) as connection:
        attempt = connection.begin_nested()
        arguments = {"session": session.secret, "request_id": request_id, "reason": "only asked"}
        outlook = Cancelled(connection.execute(_CANCEL, arguments).scalar_one())
        attempt.rollback()
    return outlook


def cancel_as_shown(database_url: str, session: Session, request_id: UUID, reason: str, shown: Cancelled) -> Cancelled:
    """`cancel`, if it comes to what was `shown`; otherwise nothing is changed. Raises what `cancel` raises.

    Raises:
        NotPossibleNow: also where it would come to something else by now.
    """
    arguments = {"session": session.secret, "request_id": request_id, "reason": said("reason", reason)}
    with transaction(engine_for(Duty.OPERATOR, database_url)) as connection:
        came_to = Cancelled(connection.execute(_CANCEL, arguments).scalar_one())
        if came_to is not shown:  # raised inside the transaction, which takes everything back
            raise NotPossibleNow(
                f"the request went on meanwhile: cancelling it now comes to {came_to}, not {shown} as you were shown; "
                "nothing was changed"
            )
    return came_to
