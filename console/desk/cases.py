"""What waits for an operator, and what an operator does about it: always a page that says what would happen first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from starlette.responses import Response

from console.desk.desk import Visit, see
from console.desk.operators import require_operator
from policies.errors import RequestRefused
from policies.states import State
from resources.store.cases import dead_letters, find_case, unclear_effects
from resources.store.late_undos import ask_undo
from resources.store.needs_review import needing_review
from resources.store.operator import Leaving, discard, redrive, resolve_compensation, resolve_unknown
from resources.store.standing import read_standing

MAX_LISTED: Final = 200
"""Dead letters on one page, the oldest; thousands are redriven by `failsafe dead-letters redrive --batch`."""

_ACTS: Final = {"redrive": redrive, "discard": discard}


def cases_page(visit: Visit) -> Response:
    """Effects that nobody knows the outcome of, failed compensations, dead letters, and what only a person can tell."""
    require_operator(visit)
    letters = dead_letters(visit.desk.database_url)
    failed = [one for one in letters if one.state == State.COMPENSATION_FAILED]
    others = [one for one in letters if one.state != State.COMPENSATION_FAILED]
    return visit.page(
        "cases.html",
        letters=others[:MAX_LISTED],
        more=max(0, len(others) - MAX_LISTED),
        compensations=failed,
        effects=unclear_effects(visit.desk.database_url),
        reviews=needing_review(visit.desk.database_url),
    )


def plan_form(visit: Visit) -> Response:
    """Say what redriving or discarding the chosen requests would do; nothing is changed yet."""
    act, reason, leaving = _leave(visit, dry_run=True)
    return visit.page("plan.html", act=act, reason=reason, leaving=leaving, names=_names(visit, leaving))


def carry_out_form(visit: Visit) -> Response:
    """Do it. Sent twice, the second finds nothing left to do and says so."""
    act, _, leaving = _leave(visit, dry_run=False)
    status = 409 if any(one.obstacle for one in leaving) else 200
    return visit.page("carried_out.html", status=status, act=act, leaving=leaving, names=_names(visit, leaving))


def effect_page(visit: Visit) -> Response:
    """One unclear effect, and what each answer would mean."""
    require_operator(visit)
    key = visit.query.get("key", "")
    found = [one for one in unclear_effects(visit.desk.database_url) if one.key == key]
    if not found:
        raise RequestRefused("it is known by now what became of this effect; see the request's timeline")
    return visit.page("effect.html", effect=found[0])


def effect_form(visit: Visit) -> Response:
    """Take the operator's word for what became of an effect, or have the next run undo one that came late."""
    url, session = visit.desk.database_url, visit.person.session
    answer, key, evidence = (visit.form.get(name) for name in ("answer", "key", "evidence"))
    if answer == "undo":
        request_id = ask_undo(url, session, key, evidence)
    elif answer in {"done", "not done"}:
        request_id = resolve_unknown(url, session, key, done=answer == "done", evidence=evidence)
    else:
        raise RequestRefused("say whether it happened; nothing was changed")
    return see(f"/requests/{request_id}/timeline")


def compensation_page(visit: Visit) -> Response:
    """One request whose compensation failed: what was done, and how it would have been undone."""
    require_operator(visit)
    return visit.page("compensation.html", case=find_case(visit.desk.database_url, str(visit.parts["request"])))


def compensation_form(visit: Visit) -> Response:
    """Take the operator's word that all was restored by hand."""
    request_id: UUID = visit.parts["request"]
    resolve_compensation(visit.desk.database_url, visit.person.session, request_id, visit.form.get("evidence"))
    return see(f"/requests/{request_id}/timeline")


def _leave(visit: Visit, *, dry_run: bool) -> tuple[str, str, list[Leaving]]:
    act, reason = visit.form.get("act"), visit.form.get("reason")
    if act not in _ACTS:
        raise RequestRefused("choose to redrive or to discard; nothing was changed")
    try:
        chosen = [UUID(text) for text in visit.form.all("request")]
    except ValueError:
        raise RequestRefused("a request named here is no request id; nothing was changed") from None
    if not chosen:
        raise RequestRefused("choose requests first; nothing was changed")
    return act, reason, _ACTS[act](visit.desk.database_url, visit.person.session, chosen, reason, dry_run=dry_run)


def _names(visit: Visit, leaving: Sequence[Leaving]) -> dict[UUID, str]:
    """What the callers call these requests."""
    found = ((one.request_id, read_standing(visit.desk.database_url, one.request_id)) for one in leaving)
    return {request_id: standing.operation_id for request_id, standing in found if standing is not None}
