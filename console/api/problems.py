"""Refusals as RFC 9457 problem details: what is wrong, in which field, and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from http import HTTPStatus

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from policies.errors import (
    FailsafeError,
    NotAuthenticated,
    NotPermitted,
    OperationConflict,
    RequestRefused,
    StoreUnavailable,
)

CONTENT_TYPE = "application/problem+json"

_STATUS: tuple[tuple[type[FailsafeError], HTTPStatus], ...] = (
    (NotAuthenticated, HTTPStatus.UNAUTHORIZED),
    (NotPermitted, HTTPStatus.FORBIDDEN),
    (OperationConflict, HTTPStatus.CONFLICT),
    (RequestRefused, HTTPStatus.UNPROCESSABLE_ENTITY),
    (StoreUnavailable, HTTPStatus.SERVICE_UNAVAILABLE),
)


@dataclass(frozen=True, slots=True)
class Wrong:
    """One thing that is wrong with what was sent; `field` is a path such as `payload.amount`, or empty for all."""

    field: str
    reason: str


def problem(status: HTTPStatus, detail: str, errors: Iterable[Wrong] = (), **headers: str) -> Response:
    """A refusal. Sent again unchanged, it is refused again, except where the status is 429 or 503."""
    content: dict[str, object] = {
        "type": "about:blank",
        "title": status.phrase,
        "status": status.value,
        "detail": detail,
        "errors": [{"field": one.field, "reason": one.reason} for one in errors],
    }
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return JSONResponse(content, status, headers=names, media_type=CONTENT_TYPE)


def refused(error: FailsafeError) -> Response:
    """The refusal that an error of ours stands for."""
    status = next((one for kind, one in _STATUS if isinstance(error, kind)), HTTPStatus.INTERNAL_SERVER_ERROR)
    if status is HTTPStatus.UNAUTHORIZED:
        return problem(status, str(error), www_authenticate="Bearer")
    return problem(status, str(error))


async def api_problem(_request: Request, error: Exception) -> Response:
    """For what the router refuses, and for what nobody foresaw."""
    if not isinstance(error, HTTPException):
        return problem(
            HTTPStatus.INTERNAL_SERVER_ERROR,
            f"something went wrong here ({type(error).__name__}); send the same request again, nothing is doubled",
        )
    given: Mapping[str, str] = error.headers or {}
    response = problem(HTTPStatus(error.status_code), "there is nothing here by this path and method")
    response.headers.update(given)
    return response
