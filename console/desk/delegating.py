"""Lending a role for a time, seeing who lent what to whom, and taking it back."""

from __future__ import annotations

from datetime import datetime
from typing import Final
from uuid import UUID

from starlette.responses import Response

from console.desk.desk import Visit, see
from console.desk.instants import zoned_instant
from console.desk.operators import is_operator
from policies.errors import NotPossibleNow, RequestRefused
from resources.store.delegations import Delegation, delegate, delegations, take_back

_FIELDS: Final = ("role", "to", "starting", "until", "zone", "reason")


def delegations_page(visit: Visit) -> Response:
    """The loans that this person gave or got, for an operator all, and the form to lend a role."""
    return _page(visit)


def delegate_form(visit: Visit) -> Response:
    """Lend a role. The same form twice is one loan; what is wrong with it is said on it."""
    given = {name: visit.form.get(name).strip() for name in _FIELDS}
    try:
        starting = zoned_instant("from", given["starting"], given["zone"]) if given["starting"] else None
        until = zoned_instant("until", given["until"], given["zone"])
        delegate(
            visit.desk.database_url,
            visit.person.session,
            given["role"],
            given["to"],
            until=until,
            reason=given["reason"],
            starting=starting,
        )
    except RequestRefused as error:
        return _page(visit, given, problem=str(error), status=422)
    except NotPossibleNow as error:  # the second click of a double click finds the loan that the first one made
        if not any(_is_this(one, visit, given, starting, until) for one in _all(visit)):
            return _page(visit, given, problem=str(error), status=409)
    return see("/delegations")


def take_back_page(visit: Visit) -> Response:
    """What taking a loan back means."""
    return visit.page("take_back.html", loan=_found(visit))


def take_back_form(visit: Visit) -> Response:
    """Take it back. Sent twice, it is taken back once."""
    loan = _found(visit)
    ended = take_back(visit.desk.database_url, visit.person.session, loan.id)
    if not ended and _found(visit).revoked_at is None:
        raise NotPossibleNow("only who lent the role or an operator takes it back; nothing was changed")
    return see("/delegations")


def _page(visit: Visit, given: dict[str, str] | None = None, *, problem: str = "", status: int = 200) -> Response:
    return visit.page(
        "delegations.html",
        status=status,
        loans=[(one, _is_endable(one, visit)) for one in _all(visit)],
        given=given or dict.fromkeys(_FIELDS, ""),
        overseer=is_operator(visit),
        problem=problem,
    )


def _all(visit: Visit) -> list[Delegation]:
    return delegations(visit.desk.database_url, visit.person.session)


def _found(visit: Visit) -> Delegation:
    wanted: UUID = visit.parts["loan"]
    for one in _all(visit):
        if one.id == wanted:
            return one
    raise RequestRefused("there is no such loan of yours; see what was lent")


def _is_endable(one: Delegation, visit: Visit) -> bool:
    over = one.revoked_at is not None or one.ends_at <= datetime.now(one.ends_at.tzinfo)
    return not over and (one.lender == visit.person.name or is_operator(visit))


def _is_this(one: Delegation, visit: Visit, given: dict[str, str], starting: datetime | None, until: datetime) -> bool:
    """Whether a loan is the one that this form makes."""
    return (
        one.revoked_at is None
        and (one.lender, one.borrower, one.role) == (visit.person.name, given["to"], given["role"])
        and one.ends_at == until
        and (starting is None or one.starts_at == starting)
        and one.reason == given["reason"]
    )
