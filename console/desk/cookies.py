"""The session's secret lives in one cookie that scripts cannot read and other sites cannot send, and nowhere else."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from resources.store.votes import Session

PLAIN_NAME: Final = "failsafe"
SECURE_NAME: Final = "__Host-failsafe"
"""With this prefix a browser takes the cookie only over HTTPS, from this host itself, for all of its paths."""


def session_secret(request: Request, *, secure: bool) -> str | None:
    """The secret that the browser keeps, if any."""
    return request.cookies.get(_name(secure))


def keep_session(response: Response, session: Session, *, secure: bool) -> None:
    """Let the browser keep a session until it expires."""
    left = int((session.expires_at - datetime.now(UTC)).total_seconds())
    response.set_cookie(
        _name(secure), session.secret, max_age=left, path="/", secure=secure, httponly=True, samesite="strict"
    )


def forget_session(response: Response, *, secure: bool) -> None:
    """Let the browser forget its session."""
    response.delete_cookie(_name(secure), path="/", secure=secure, httponly=True, samesite="strict")


def _name(secure: bool) -> str:
    return SECURE_NAME if secure else PLAIN_NAME
