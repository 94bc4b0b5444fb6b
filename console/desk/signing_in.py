"""The way in and the way out."""

from __future__ import annotations

from http import HTTPStatus

import anyio
from starlette.requests import Request
from starlette.responses import Response

from console.desk.cookies import forget_session, keep_session, session_secret
from console.desk.csrf import FIELD, check_csrf, check_origin
from console.desk.desk import Desk, page, see
from console.desk.forms import read_form
from console.desk.handling import secure
from console.desk.problems import problem_page, status_of
from console.desk.sign_in_limit import DELAY
from console.threads import in_thread
from policies.errors import FailsafeError, NotAuthenticated, NotPermitted
from resources.store.sessions import read_session, sign_out
from resources.store.votes import Session, sign_in


async def sign_in_page(request: Request) -> Response:
    """Ask for the token."""
    return _form(request.query_params.get("next", ""))


async def sign_in_form(request: Request) -> Response:
    """Exchange the token for a session and go where one wanted to."""
    desk: Desk = request.app.state.desk
    address = request.client.host if request.client else ""
    began = anyio.current_time()
    wanted = ""
    try:
        check_origin(request)
        form = await read_form(request)
        wanted = form.get("next")
        wait = desk.limit.wait(address)
        if wait:
            response = _form(wanted, f"Too many attempts from here. Try again in {int(wait) + 1} seconds.", 429)
            response.headers["retry-after"] = str(int(wait) + 1)
            return response
        session = await in_thread(request, _sign_in_person, desk, form.get("token").strip())
    except (NotAuthenticated, NotPermitted) as error:
        desk.limit.failed(address)
        await anyio.sleep_until(began + DELAY)
        return _form(wanted, str(error), status_of(error))
    except FailsafeError as error:
        return problem_page(str(error), status_of(error), back="/sign-in")
    response = see(_local(wanted))
    keep_session(response, session, secure=secure(request))
    return response


async def sign_out_form(request: Request) -> Response:
    """End the session, here and in the database."""
    desk: Desk = request.app.state.desk
    secret = session_secret(request, secure=secure(request))
    if secret is not None:
        try:
            check_origin(request)
            check_csrf(secret, (await read_form(request)).get(FIELD))
            await in_thread(request, sign_out, desk.database_url, secret)
        except FailsafeError as error:
            return problem_page(str(error), status_of(error))
    response = see("/sign-in")
    forget_session(response, secure=secure(request))
    return response


def _sign_in_person(desk: Desk, token: str) -> Session:
    try:
        session = sign_in(desk.database_url, token.encode("utf-8", "replace").decode().replace("\0", ""))
    except NotAuthenticated:
        raise NotAuthenticated("This token is not known here, or its holder is disabled. Paste all of it.") from None
    if read_session(desk.database_url, session.secret).kind != "human":
        sign_out(desk.database_url, session.secret)
        raise NotPermitted(
            "This is the token of a service. Services submit; only people decide, so sign in as yourself."
        )
    return session


def _form(wanted: str, problem: str = "", status: int = HTTPStatus.OK) -> Response:
    return page("sign_in.html", None, status=status, wanted=_local(wanted), problem=problem)


def _local(path: str) -> str:
    """`path` if it is one of ours; a link to sign in must not lead anywhere else afterwards."""
    plain = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable() and "\\" not in path
    return path if plain else "/inbox"
