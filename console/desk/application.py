"""The desk and the intake API as one application: every page and where it stands."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING
from uuid import UUID

from anyio import CapacityLimiter
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from console.api.routes import API, api_problem, api_routes
from console.desk.bulk import bulk_form, bulk_page
from console.desk.cancelling import cancel_form, cancel_page
from console.desk.cases import (
    carry_out_form,
    cases_page,
    compensation_form,
    compensation_page,
    effect_form,
    effect_page,
    plan_form,
)
from console.desk.delegating import delegate_form, delegations_page, take_back_form, take_back_page
from console.desk.desk import Desk
from console.desk.edited import edited_page
from console.desk.editing import edit_form, edit_page
from console.desk.handling import Handler, for_signed_in
from console.desk.headers import SecurityHeaders
from console.desk.inbox import inbox_page
from console.desk.pausing import pause_form, pause_plan_page, pauses_page
from console.desk.problems import http_problem, unexpected_problem
from console.desk.proposal import find_form, proposal_page, request_page, timeline_page
from console.desk.rendering import STATIC
from console.desk.signing_in import sign_in_form, sign_in_page, sign_out_form
from console.desk.voting import vote_form, vote_page
from console.threads import AT_ONCE

if TYPE_CHECKING:
    from resources.workflow import Workflow

PAGES: tuple[tuple[str, str, Handler], ...] = (
    ("GET", "/inbox", inbox_page),
    ("GET", "/find", find_form),
    ("GET", "/approvals/{approval:uuid}", proposal_page),
    ("GET", "/approvals/{approval:uuid}/vote", vote_page),
    ("POST", "/approvals/{approval:uuid}/vote", vote_form),
    ("GET", "/approvals/{approval:uuid}/edit", edit_page),
    ("POST", "/approvals/{approval:uuid}/edit", edit_form),
    ("GET", "/approvals/{approval:uuid}/edited", edited_page),
    ("GET", "/bulk", bulk_page),
    ("POST", "/bulk", bulk_form),
    ("GET", "/requests/{request:uuid}", request_page),
    ("GET", "/requests/{request:uuid}/timeline", timeline_page),
    ("GET", "/requests/{request:uuid}/cancel", cancel_page),
    ("POST", "/requests/{request:uuid}/cancel", cancel_form),
    ("GET", "/delegations", delegations_page),
    ("POST", "/delegations", delegate_form),
    ("GET", "/delegations/{loan:uuid}/take-back", take_back_page),
    ("POST", "/delegations/{loan:uuid}/take-back", take_back_form),
    ("GET", "/pauses", pauses_page),
    ("GET", "/pauses/plan", pause_plan_page),
    ("POST", "/pauses", pause_form),
    ("GET", "/cases", cases_page),
    ("POST", "/cases/plan", plan_form),
    ("POST", "/cases/carry-out", carry_out_form),
    ("GET", "/cases/effect", effect_page),
    ("POST", "/cases/effect", effect_form),
    ("GET", "/cases/compensations/{request:uuid}", compensation_page),
    ("POST", "/cases/compensations/{request:uuid}", compensation_form),
)
"""What one sees and does when signed in."""


def application(
    database_url: str,
    workflows: Mapping[str, Workflow],
    *,
    loopback: bool,
    released: Callable[[UUID], None] = lambda _approval_id: None,
) -> Starlette:
    """The application on one database; `workflows` those whose requests the API takes and whose proposals are edited.

    `released` is told of each approval request that a vote has released; it must neither wait nor raise.
    """
    app = Starlette(
        routes=[
            Route("/", _home),
            Route("/sign-in", sign_in_page),
            Route("/sign-in", sign_in_form, methods=["POST"]),
            Route("/sign-out", sign_out_form, methods=["POST"]),
            *(Route(path, for_signed_in(handler), methods=[method]) for method, path, handler in PAGES),
            Mount("/static", StaticFiles(directory=STATIC)),
            *api_routes(),
        ],
        middleware=[Middleware(SecurityHeaders)],
        exception_handlers={HTTPException: _http_problem, Exception: _unexpected_problem},
    )
    app.state.threads = CapacityLimiter(AT_ONCE)
    app.state.desk = Desk(database_url, loopback, released, workflows)
    app.state.api = API(database_url, workflows)
    return app


async def _home(_request: Request) -> Response:
    return RedirectResponse("/inbox", status_code=303)


async def _http_problem(request: Request, error: Exception) -> Response:
    return await (api_problem if _is_api(request) else http_problem)(request, error)


async def _unexpected_problem(request: Request, error: Exception) -> Response:
    return await (api_problem if _is_api(request) else unexpected_problem)(request, error)


def _is_api(request: Request) -> bool:
    return request.url.path.startswith("/v1/")
