"""Supplying what a request lacked: with it a new revision begins, and every stage runs again."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

import sqlalchemy as sa
from pydantic import create_model
from pydantic_core import PydanticSerializationError, to_json

from policies.actions import Request
from policies.errors import RequestRefused
from policies.inputs import amended, field_names, reads_the_same
from resources.store.engine import Duty, engine_for, transaction
from resources.store.operator import said
from resources.store.queries import query
from resources.store.rows import MAX_PAYLOAD, AcceptableRow, check_row
from resources.store.votes import Session

if TYPE_CHECKING:
    from resources.workflow import Workflow


@dataclass(frozen=True, slots=True)
class Supplied:
    """The revision that began with the input, and the names of the fields that were added."""

    revision: int
    fields: tuple[str, ...]


def supply(
    database_url: str,
    session: Session,
    request_id: UUID,
    workflow: Workflow,
    fields: Mapping[str, Any] | bytes,
    reason: str,
) -> Supplied:
    """Add `fields` (a mapping, or JSON as bytes) to a request that needs review, as its initiator or as an operator.

    A field that has a value stays as it is. What was received stays, too, so submitting it again is still a replay; the
    request with what was added is checked as at intake. Whoever supplied never decides on the request.

    Raises:
        NotPermitted: neither initiator nor a person with the role `operator`.
        NotPossibleNow: it does not need review (any more), or an effect of it was begun.
        RequestRefused: there is no such request, `workflow` is not the one it belongs to, a field is wrong (the message
            names it and says why), or the reason is missing.
    """
    why, added = said("reason", reason), _fields(fields)
    engine = engine_for(Duty.OPERATOR, database_url)
    with transaction(engine) as connection:
        arguments = {"session": session.secret, "request_id": request_id}
        standing = connection.execute(query("input_wanted"), arguments).one()
    payload = _checked(workflow, standing, added)
    with transaction(engine) as connection:
        arguments |= {"revision": standing.revision, "payload": payload, "reason": why}
        revision: int = connection.execute(query("supply_input"), arguments).scalar_one()
    return Supplied(revision, field_names(added))


def _fields(fields: Mapping[str, Any] | bytes) -> bytes:
    if not isinstance(fields, bytes):
        try:
            fields = to_json(fields, inf_nan_mode="constants")  # so that NaN is refused by name, not stored as null
        except PydanticSerializationError as error:
            raise RequestRefused(f"the input cannot be written as JSON: {error}") from None
    if len(fields) > MAX_PAYLOAD:
        raise RequestRefused(f"the input is {len(fields)} bytes long; at most {MAX_PAYLOAD} are accepted")
    return fields


def _checked(workflow: Workflow, standing: sa.Row[Any], fields: bytes) -> bytes:
    """The amended payload, held to what intake holds payloads to."""
    if standing.workflow != workflow.name or standing.workflow_version not in workflow.carried_versions:
        raise RequestRefused(
            f"the request belongs to {standing.workflow} {standing.workflow_version}; give the workflow that carries it"
        )
    request = workflow.request
    payload = amended(standing.payload, fields)
    checked = check_row(1, {"operation_id": standing.operation_id, "payload": payload}, request)
    if not isinstance(checked, AcceptableRow):
        wrong = "; ".join(f"{one.field.removeprefix('payload.')}: {one.reason}" for one in checked)
        raise RequestRefused(
            f"nothing was supplied: {wrong}; {request.__name__} has the fields {', '.join(request.model_fields)}"
        )
    changed = _changed(_as_it_stood(request, standing.payload, fields), request.model_validate_json(payload))
    if changed:
        raise RequestRefused(f"{', '.join(changed)} would change, and input only adds; nothing was supplied")
    return payload


def _as_it_stood(request: type[Request], payload: bytes, fields: bytes) -> Request:
    """The request before `fields` were added, some of which a later definition may require."""
    with suppress(Exception):  # its validators run on what an earlier definition took
        return request.model_validate_json(payload)
    names = field_names(fields)
    others = sorted(set(names) - request.model_fields.keys())
    if others:
        raise RequestRefused(
            f"nothing was supplied: as it stands the request does not fit {request.__name__}, so it takes only fields"
            f" of that by their own names, {', '.join(request.model_fields)}, and not {', '.join(others)}"
        )
    missing: dict[str, Any] = dict.fromkeys(names, (Any, None))
    try:
        return create_model(request.__name__, __base__=request, **missing).model_validate_json(payload)
    except Exception as error:  # noqa: BLE001 # as above
        raise RequestRefused(
            f"nothing was supplied: as it stands the request cannot be read even where {', '.join(names)} may be"
            f" missing ({type(error).__name__}), so nobody can tell whether its values would change; submit what is"
            " meant under another operation_id"
        ) from None


def _changed(was: Request, now: Request) -> list[str]:
    """Fields that had a value and would read as another: by a second name of theirs, or by what a validator makes."""
    had = (name for name in was.model_fields_set if getattr(was, name) is not None)
    return sorted(name for name in had if not reads_the_same(getattr(was, name), getattr(now, name)))
