"""The pause switch: what is paused, what a pause would hold back and comes too late for, and lifting it again."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from console.desk.desk import Visit
from console.desk.operators import require_operator
from policies.errors import NotPossibleNow, RequestRefused
from resources.store.pausable import pausable, would_reach
from resources.store.pauses import EVERYTHING, Reach, Scope, pause, pauses, resume

SCOPES: Final = {
    Scope.EVERYTHING: "everything",
    Scope.WORKFLOW: "workflow",
    Scope.ACTION_TYPE: "action type, its undo included",
    Scope.PROVIDER: "provider",
}
"""What a pause can be about, as people say it."""

_ACTS: Final = frozenset({"pause", "resume"})


def pauses_page(visit: Visit) -> Response:
    """What is paused now, with what each pause holds back, and the form to pause something."""
    require_operator(visit)
    url = visit.desk.database_url
    return visit.page("pauses.html", pauses=pauses(url), pausable=pausable(url), scopes=SCOPES)


def pause_plan_page(visit: Visit) -> Response:
    """What pausing or resuming would do, and the form to do it; nothing is changed yet."""
    require_operator(visit)
    act, scope, name = _chosen(visit.query.get("act", ""), visit.query.get("what", ""))
    if name not in pausable(visit.desk.database_url)[scope]:
        raise RequestRefused("there is nothing of this name to pause; choose on the page. Nothing was changed")
    reach = would_reach(visit.desk.database_url, scope, name)
    return visit.page("pause_plan.html", act=act, scope=scope, name=name, reach=reach)


def pause_form(visit: Visit) -> Response:
    """Pause or resume, and report what that stopped and what it came too late for. Paused twice, it is paused once."""
    act, scope, name = _chosen(visit.form.get("act"), visit.form.get("what"))
    reason = visit.form.get("reason")
    url, session = visit.desk.database_url, visit.person.session
    reach: Reach | None = None
    if act == "pause":
        reach = pause(url, session, scope, name, reason)
    elif not resume(url, session, scope, name, reason):
        raise NotPossibleNow("it is not paused any more, so nothing was changed; see what is paused now")
    return visit.page("paused.html", scope=scope, name=name, reach=reach)


def _chosen(act: str, what: str) -> tuple[str, Scope, str]:
    scope, _, name = what.partition(":")
    if act not in _ACTS or scope not in {*Scope} or not name:
        raise RequestRefused("choose what to pause or to resume; nothing was changed")
    return act, Scope(scope), EVERYTHING if scope == Scope.EVERYTHING else name
