"""An approval request as somebody who is signed in is shown it."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from starlette.responses import Response

from console.desk.comparison import compared
from console.desk.desk import Visit
from console.desk.document import ShownDocument, shown_document
from console.desk.offers import cancel_offer
from console.desk.operators import is_operator
from policies.errors import RequestRefused
from resources.store.account import Account, read_account
from resources.store.desk_access import may_see, vote_obstacle
from resources.store.inbox import Asked, find_asked
from resources.store.rounds import CastVote, Round, read_rounds


@dataclass(frozen=True, slots=True)
class AskedPage:
    """What is shown, every round there was, what this person said, and why they may not vote now (None: they may)."""

    asked: Asked
    document: ShownDocument
    rounds: list[Round]
    own_vote: CastVote | None
    obstacle: str | None


def proposal_response(visit: Visit, name: str, *, problem: str = "", status: int = 200) -> Response:
    """The page of an approval request; `problem` says what was wrong with the form that it was sent."""
    shown = read_asked(visit, name)
    account: Account = read_account(visit.desk.database_url, str(shown.asked.request_id))
    return visit.page(
        "proposal.html",
        status=status,
        shown=shown,
        account=account,
        problem=problem,
        comparison=compared(visit.desk.database_url, shown.asked, shown.rounds),
        overseer=is_operator(visit),
        editable=edit_obstacle(visit, shown) is None,
        cancel=cancel_offer(visit, shown.asked.request_id),
    )


def require_sight(visit: Visit, request_id: UUID) -> None:
    """Raise unless this person may look at the request.

    Raises:
        RequestRefused: they may not, or there is none; the answer does not say which.
    """
    if not may_see(visit.desk.database_url, visit.person.secret, request_id):
        raise RequestRefused("there is no such request here, or it is not yours to look at")


def read_asked(visit: Visit, name: str, prefix: str = "") -> AskedPage:
    """The approval request that `name` means.

    Raises:
        RequestRefused: there is none, or this person may not look at it.
        FailsafeError: what is stored is not what was hashed.
    """
    url = visit.desk.database_url
    asked = find_asked(url, name)
    if asked is None:
        raise RequestRefused("nobody was asked about this request")
    require_sight(visit, asked.request_id)
    rounds = read_rounds(url, asked.request_id)
    this_round = next(one for one in rounds if one.approval_id == asked.approval_id)
    own_vote = this_round.vote_of(visit.person.principal_id)
    document = shown_document(asked.document, prefix)
    return AskedPage(asked, document, rounds, own_vote, _obstacle(visit, asked, document, own_vote))


def edit_obstacle(visit: Visit, shown: AskedPage) -> str | None:
    """Why this person may not change what is asked now; None: they may. A vote of theirs is no obstacle."""
    if shown.obstacle is None or shown.own_vote is None or shown.asked.outcome != "open":
        return shown.obstacle
    return vote_obstacle(visit.desk.database_url, visit.person.secret, shown.asked.approval_id)


def _obstacle(visit: Visit, asked: Asked, document: ShownDocument, own_vote: CastVote | None) -> str | None:
    if asked.outcome != "open":
        return f"it takes no votes any more: {asked.outcome}"
    if own_vote is not None:
        return f"you voted already: {own_vote.vote}"
    if not document.complete:
        return "this page cannot show all of it"
    return vote_obstacle(visit.desk.database_url, visit.person.secret, asked.approval_id)
