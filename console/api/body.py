"""The body of a submission, read within bounds and checked before anything is stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from starlette.requests import Request

from console.api.problems import Wrong
from policies.errors import CanonicalFormError
from policies.strict_json import read_json
from resources.store.rows import MAX_PAYLOAD, text_problems

if TYPE_CHECKING:
    from resources.workflow import Workflow

MAX_BODY: Final = MAX_PAYLOAD + 65_536
"""Bytes of a body: the largest payload and what stands around it."""

MAX_TENANT: Final = 60

FIELDS: Final = frozenset({"workflow", "operation_id", "subject", "tenant", "payload"})


@dataclass(frozen=True, slots=True)
class Submitted:
    """What a body asks for; the row itself is checked by intake, as every other row is."""

    workflow: Workflow
    tenant: str
    row: Mapping[str, Any]


class TooLarge(Exception):
    """The body is larger than MAX_BODY."""


async def read_body(request: Request) -> bytes:
    """The body.

    Raises:
        TooLarge: it is, by what it says or by what came.
    """
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > MAX_BODY:
            raise TooLarge
    return bytes(body)


def read_submitted(body: bytes, workflows: Mapping[str, Workflow]) -> Submitted | list[Wrong]:
    """What the body asks for, or all that is wrong with what stands around the payload."""
    try:
        content = read_json(body)
    except CanonicalFormError as error:
        return [Wrong("", str(error))]
    if not isinstance(content, dict):
        return [Wrong("", "must be an object")]
    wrong = [Wrong(name, "is not a field of a submission") for name in content if name not in FIELDS]
    name = content.get("workflow")
    workflow = workflows.get(name) if isinstance(name, str) else None
    if workflow is None:
        wrong.append(Wrong("workflow", f"must be one of: {', '.join(sorted(workflows)) or 'none is served here'}"))
    if content.get("tenant", "") != "":
        wrong += [Wrong(*found) for found in text_problems("tenant", content["tenant"], MAX_TENANT)]
    wrong += [Wrong("subject", "must be text or left out")] if _is_no_text(content.get("subject")) else []
    if not isinstance(content.get("payload"), dict):
        wrong.append(Wrong("payload", "must be an object with the request's fields"))
    if wrong or workflow is None:
        return wrong
    row = {key: content[key] for key in ("operation_id", "subject", "payload") if key in content}
    return Submitted(workflow, content.get("tenant", ""), row)


def _is_no_text(value: object) -> bool:
    return value is not None and not (isinstance(value, str) and value)
