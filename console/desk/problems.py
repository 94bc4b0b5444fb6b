"""What a person is told when something did not work: always that, and never a trace of how it was done."""

from __future__ import annotations

from http import HTTPStatus

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from console.desk.desk import page
from policies.errors import (
    FailsafeError,
    NotAuthenticated,
    NotPermitted,
    NotPossibleNow,
    RequestRefused,
    StoreUnavailable,
    VoteRefused,
)
from resources.store.sessions import SignedIn

_STATUS: tuple[tuple[type[FailsafeError], HTTPStatus], ...] = (
    (NotAuthenticated, HTTPStatus.UNAUTHORIZED),
    (NotPermitted, HTTPStatus.FORBIDDEN),
    (VoteRefused, HTTPStatus.CONFLICT),
    (NotPossibleNow, HTTPStatus.CONFLICT),
    (RequestRefused, HTTPStatus.UNPROCESSABLE_ENTITY),
    (StoreUnavailable, HTTPStatus.SERVICE_UNAVAILABLE),
)

_TITLES = {
    HTTPStatus.UNAUTHORIZED: "You are not signed in",
    HTTPStatus.FORBIDDEN: "You may not do this",
    HTTPStatus.CONFLICT: "This is not possible now",
    HTTPStatus.UNPROCESSABLE_ENTITY: "That did not work",
    HTTPStatus.SERVICE_UNAVAILABLE: "Try it again in a moment",
    HTTPStatus.INTERNAL_SERVER_ERROR: "Something went wrong",
}
"""What a refusal is called, where HTTP has only its own word for it."""


def status_of(error: FailsafeError) -> HTTPStatus:
    """The HTTP status that says what kind of refusal it is."""
    return next((status for kind, status in _STATUS if isinstance(error, kind)), HTTPStatus.INTERNAL_SERVER_ERROR)


def problem_page(problem: str, status: HTTPStatus, person: SignedIn | None = None, *, back: str = "/inbox") -> Response:
    """A page that says what did not happen and where to go on."""
    title = _TITLES.get(status, status.phrase)
    return page("problem.html", person, status=status, problem=problem, title=title, back=back)


async def http_problem(_request: Request, error: Exception) -> Response:
    """For what the router refuses: no such page, no such method."""
    assert isinstance(error, HTTPException)
    status = HTTPStatus(error.status_code)
    response = problem_page(f"{status.phrase}: there is nothing here to see or to send to.", status)
    response.headers.update(error.headers or {})
    return response


async def unexpected_problem(_request: Request, error: Exception) -> Response:
    """For what nobody foresaw; the server's log has it."""
    return problem_page(
        f"Something went wrong here ({type(error).__name__}). It may or may not have been done: look at the request "
        "again before you repeat it, and tell the operator, whose log has the rest.",
        HTTPStatus.INTERNAL_SERVER_ERROR,
    )
