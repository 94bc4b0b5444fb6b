"""The intake API: submit a request, ask how it stands. The same answers come however often one asks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING
from uuid import UUID

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from console.api.body import MAX_BODY, Submitted, TooLarge, read_body, read_submitted
from console.api.openapi import openapi_document
from console.api.problems import Wrong, api_problem, problem, refused
from console.threads import in_thread
from policies.errors import FailsafeError, NotAuthenticated, NotPermitted
from resources.store.intake import Receipt, submit
from resources.store.sessions import TokenHolder, read_token_holder
from resources.store.standing import read_standing

if TYPE_CHECKING:
    from resources.workflow import Workflow

__all__ = ["API", "api_problem", "api_routes"]

OVERSEERS = frozenset({"operator", "auditor"})
"""Roles that may ask about requests of others."""


@dataclass(frozen=True, slots=True)
class API:
    """One running API and the workflows whose requests it takes."""

    database_url: str
    workflows: Mapping[str, Workflow]


def api_routes() -> list[Route]:
    """What stands under /v1."""
    return [
        Route("/v1/requests", _submit, methods=["POST"]),
        Route("/v1/requests/{request:uuid}", _standing, methods=["GET"]),
        Route("/v1/openapi.json", _openapi, methods=["GET"]),
    ]


async def _submit(request: Request) -> Response:
    api: API = request.app.state.api
    try:
        holder = await _holder(request)
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            return problem(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "send application/json")
        submitted = read_submitted(await read_body(request), api.workflows)
        if not isinstance(submitted, Submitted):
            return _unprocessable(submitted)
        await in_thread(request, _require_role, submitted.workflow, holder)
        return await in_thread(request, _store, api, submitted, _token(request))
    except TooLarge:
        return problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"at most {MAX_BODY} bytes are accepted")
    except FailsafeError as error:
        return refused(error)


async def _standing(request: Request) -> Response:
    api: API = request.app.state.api
    request_id: UUID = request.path_params["request"]
    try:
        holder = await _holder(request)
        found = await in_thread(request, read_standing, api.database_url, request_id)
    except FailsafeError as error:
        return refused(error)
    if found is None or (found.initiator != holder.principal_id and not OVERSEERS & set(holder.roles)):
        return problem(HTTPStatus.NOT_FOUND, "there is no such request, or another principal submitted it")
    return JSONResponse(
        {
            "request_id": str(found.request_id),
            "workflow": found.workflow,
            "operation_id": found.operation_id,
            "state": found.state,
            "reason": found.reason,
            "batch_key": found.batch_key,
            "received_at": found.received_at.isoformat(),
            "closed_at": found.closed_at and found.closed_at.isoformat(),
        }
    )


async def _openapi(request: Request) -> Response:
    api: API = request.app.state.api
    return JSONResponse(openapi_document(api.workflows))


async def _holder(request: Request) -> TokenHolder:
    api: API = request.app.state.api
    return await in_thread(request, read_token_holder, api.database_url, _token(request))


def _token(request: Request) -> str:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise NotAuthenticated("send your token: Authorization: Bearer ...")
    return token.strip()


def _require_role(workflow: Workflow, holder: TokenHolder) -> None:
    """Refuse at the door what validation would refuse in any case: nothing it could propose is permitted to them.

    Raises:
        NotPermitted: the policy in force permits none of the workflow's actions to any of their roles.
    """
    permissions = workflow.policy_in_force().permissions
    permitted = {role for roles in (permissions or {}).values() for role in roles}
    if permissions and not permitted & set(holder.roles):
        raise NotPermitted(f"{workflow.name} takes requests from these roles: {', '.join(sorted(permitted))}")


def _store(api: API, submitted: Submitted, token: str) -> Response:
    stored = submit(
        [(1, submitted.row)],
        workflow=submitted.workflow,
        token=token,
        database_url=api.database_url,
        tenant=submitted.tenant,
    )
    wrong = [Wrong(one.field, one.reason) for one in stored.problems]
    if any(one.conflict for one in stored.problems):
        return problem(HTTPStatus.CONFLICT, "nothing was stored", wrong)
    return _unprocessable(wrong) if wrong else _accepted(submitted, stored.receipts[0])


def _accepted(submitted: Submitted, receipt: Receipt) -> Response:
    """202, not 201: the request is safely stored, and nothing is decided yet."""
    return JSONResponse(
        {
            "request_id": str(receipt.request_id),
            "workflow": submitted.workflow.name,
            "operation_id": receipt.operation_id,
            "batch_key": receipt.batch_key,
            "received_at": receipt.received_at.isoformat(),
            "replayed": receipt.replayed,
        },
        HTTPStatus.ACCEPTED,
        headers={"location": f"/v1/requests/{receipt.request_id}"},
    )


def _unprocessable(wrong: list[Wrong]) -> Response:
    return problem(
        HTTPStatus.UNPROCESSABLE_ENTITY, "nothing was stored; correct the fields named and send it again", wrong
    )
