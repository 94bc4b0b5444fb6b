"""What else than voting somebody is offered to do with a request. Whether they may is decided by the database."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from console.desk.desk import Visit
from console.desk.operators import is_operator
from policies.states import State
from resources.store.standing import read_standing

CANCELLABLE: Final = frozenset(
    {
        State.RECEIVED,
        State.PROPOSAL_READY,
        State.AWAITING_APPROVAL,
        State.EXECUTING,
        State.NEEDS_REVIEW,
        State.DEAD_LETTERED,
    }
)


def cancel_offer(visit: Visit, request_id: UUID) -> str:
    """What a link to cancelling the request says to this person; empty: they are not offered it."""
    found = read_standing(visit.desk.database_url, request_id)
    if found is None or found.state not in CANCELLABLE:
        return ""
    if found.initiator == visit.person.principal_id and found.state != State.DEAD_LETTERED:
        return "Withdraw this request"
    return "Cancel this request" if is_operator(visit) else ""
