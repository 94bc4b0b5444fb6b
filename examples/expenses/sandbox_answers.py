"""The answers of the sandbox provider, whole and broken, and how it reads what it is sent."""

from __future__ import annotations

import json

from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from examples.expenses.sandbox_ledger import Answer


class BrokenAnswer(Response):
    """Promises an answer and breaks the connection in the middle of it."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002  # what ASGI calls
        """Send the head and the beginning of a body; returning early makes the server close the connection."""
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"100")]})
        await send({"type": "http.response.body", "body": b'{"id": "', "more_body": True})


def first(answer: Answer) -> Response:
    """The answer as it is given for the first time."""
    return JSONResponse(json.loads(answer.content), answer.status)


def again(answer: Answer) -> Response:
    """The first answer once more, marked so."""
    return JSONResponse({**json.loads(answer.content), "replayed": True}, answer.status)


def found(answer: Answer) -> Response:
    """The answer to a look-up: always 200, a refusal named in `refused`."""
    content = json.loads(answer.content)
    return JSONResponse(content if answer.status == 200 else {"refused": content["code"], "detail": content["detail"]})


def problem(status: int, detail: str, headers: dict[str, str] | None = None) -> Response:
    """An answer that says what is wrong."""
    return JSONResponse({"detail": detail}, status, headers)


def canonical(raw: str) -> str | None:
    """The JSON object in one spelling, so that the order of its members does not make it another request."""
    try:
        document = json.loads(raw)
    except ValueError:
        return None
    return json.dumps(document, sort_keys=True) if isinstance(document, dict) else None


def minor_units(body: str) -> int:
    """The amount that a canonical body asks for; 0 where it names none."""
    amount = json.loads(body).get("amount")
    return amount["minor"] if isinstance(amount, dict) and isinstance(amount.get("minor"), int) else 0
