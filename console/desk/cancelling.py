"""Deciding against a request: first a page that says what it would come to, then exactly that or nothing."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from starlette.responses import Response

from console.desk.asked import require_sight
from console.desk.desk import Visit
from policies.errors import RequestRefused
from policies.states import State
from resources.store.account import read_account
from resources.store.cancel_as_shown import cancel_as_shown, cancel_outlook
from resources.store.operator import Cancelled

WOULD: Final = {
    Cancelled.CANCELLED: "It would be cancelled at once: nothing was done, and nothing will be.",
    Cancelled.COMPENSATING: "Part of it was done. The next runs would undo that, last first; nothing else starts.",
    Cancelled.UNCERTAIN: "An effect is under way, and nobody knows its outcome yet. No other would start. Once the "
    "outcome is known, what was done is undone; if that cannot be undone, the request goes on to its end.",
}
"""What a cancellation would come to, for who is about to decide on it."""

DONE: Final = {
    Cancelled.CANCELLED: "It is cancelled: nothing was done, and nothing will be.",
    Cancelled.COMPENSATING: "It is being undone: runs undo what was done, last first. Nothing else of it starts.",
    Cancelled.UNCERTAIN: "It is noted: an effect is under way and no other starts. Once its outcome is known, what was "
    "done is undone; if that cannot be undone, the request goes on to its end.",
}


def cancel_page(visit: Visit) -> Response:
    """What cancelling would come to now, and the form to do it."""
    return _page(visit, visit.parts["request"])


def cancel_form(visit: Visit) -> Response:
    """Cancel, if it still comes to what was shown. Sent twice it is one cancellation."""
    request_id: UUID = visit.parts["request"]
    require_sight(visit, request_id)
    shown = visit.form.get("outlook")
    if shown not in {*Cancelled}:
        raise RequestRefused("the form does not say what you were shown; open the page again. Nothing was changed")
    reason = visit.form.get("reason")
    if not reason.strip():
        return _page(visit, request_id, problem="Say why; nothing was changed yet.", status=422)
    came_to = cancel_as_shown(visit.desk.database_url, visit.person.session, request_id, reason, Cancelled(shown))
    account = read_account(visit.desk.database_url, str(request_id))
    return visit.page("cancelled.html", account=account, came_to=came_to, done=DONE[came_to])


def _page(visit: Visit, request_id: UUID, *, problem: str = "", status: int = 200) -> Response:
    require_sight(visit, request_id)
    outlook = cancel_outlook(visit.desk.database_url, visit.person.session, request_id)
    account = read_account(visit.desk.database_url, str(request_id))
    return visit.page(
        "cancel.html",
        status=status,
        account=account,
        outlook=outlook,
        would=WOULD[outlook],
        over=account.state == State.CANCELLED,
        problem=problem,
    )
