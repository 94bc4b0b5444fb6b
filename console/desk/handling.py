"""From a request of the browser to a page: who is it, is it our own form, what is the answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import TypeAlias
from urllib.parse import quote

from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response

from console.desk.cookies import forget_session, session_secret
from console.desk.csrf import FIELD, check_csrf, check_origin
from console.desk.desk import Desk, Visit, see
from console.desk.forms import Form, read_form
from console.desk.problems import problem_page, status_of
from console.threads import in_thread
from policies.errors import FailsafeError, NotAuthenticated
from resources.store.sessions import SignedIn, read_session

Handler: TypeAlias = Callable[[Visit], Response]
Endpoint: TypeAlias = Callable[[Request], Awaitable[Response]]


def secure(request: Request) -> bool:
    """Whether the cookie is kept to HTTPS: always, except for a desk on loopback that is reached by plain HTTP."""
    desk: Desk = request.app.state.desk
    return request.url.scheme == "https" or not desk.loopback


def for_signed_in(handler: Handler) -> Endpoint:
    """An endpoint for people who are signed in; a form must be one of their own session."""

    async def endpoint(request: Request) -> Response:
        try:
            form = await _own_form(request)
        except FailsafeError as error:
            return problem_page(str(error), status_of(error))
        return await in_thread(request, _answer, handler, request, form)

    return endpoint


async def _own_form(request: Request) -> Form:
    if request.method != "POST":
        return Form()
    check_origin(request)
    return await read_form(request)


def _answer(handler: Handler, request: Request, form: Form) -> Response:
    desk: Desk = request.app.state.desk
    secret = session_secret(request, secure=secure(request))
    person: SignedIn | None = None
    try:
        if secret is None:
            raise NotAuthenticated("you are not signed in")
        person = read_session(desk.database_url, secret)
        if request.method == "POST":
            check_csrf(secret, form.get(FIELD))
        return handler(Visit(desk, person, request.path_params, _query(request), form))
    except NotAuthenticated:
        return _to_sign_in(request)
    except FailsafeError as error:
        return problem_page(str(error), status_of(error), person)


def _query(request: Request) -> QueryParams:
    """What stands behind the path, without NUL: Postgres refuses it, and nothing is named so."""
    return QueryParams([(name, value.replace("\0", "")) for name, value in request.query_params.multi_items()])


def _to_sign_in(request: Request) -> Response:
    """A page is shown after signing in. A form is not sent again by itself: what it would do is said anew."""
    if request.method == "POST":
        response = problem_page(
            "Your session is over, so nothing was done. Sign in and do it again.",
            HTTPStatus.UNAUTHORIZED,
            back="/sign-in",
        )
    else:
        wanted = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        response = see(f"/sign-in?next={quote(wanted, safe='')}")
    forget_session(response, secure=secure(request))
    return response
