"""The OpenAPI document of the intake API, with the request schema of every workflow it serves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from console.api.body import MAX_TENANT
from policies.states import State
from resources.store.rows import MAX_OPERATION_ID, MAX_SUBJECT

if TYPE_CHECKING:
    from resources.workflow import Workflow

_NO_CONTROL: Final = r"^[^\u0000-\u001f\u007f-\u009f\u2028\u2029]*$"


def openapi_document(workflows: Mapping[str, Workflow]) -> dict[str, Any]:
    """OpenAPI 3.1. The schema of each workflow's payload is that of its request class."""
    schemas: dict[str, Any] = {"Receipt": _RECEIPT, "Standing": _STANDING, "Problem": _PROBLEM}
    submissions = []
    for name, workflow in sorted(workflows.items()):
        schemas |= _submission_schemas(name, workflow)
        submissions.append({"$ref": f"#/components/schemas/{name}.submission"})
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "failsafe intake",
            "version": "1",
            "description": "Submit requests to governed workflows and ask how they stand. A submission repeated with "
            "the same operation_id and payload is a replay and stores nothing twice.",
        },
        "security": [{"token": []}],
        "paths": {
            "/v1/requests": {"post": _submit_operation(submissions)},
            "/v1/requests/{request_id}": {"get": _standing_operation()},
        },
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": schemas,
        },
    }


def _submission_schemas(name: str, workflow: Workflow) -> dict[str, Any]:
    payload = workflow.request.model_json_schema(ref_template=f"#/components/schemas/{name}.{{model}}")
    parts = payload.pop("$defs", {})
    submission = {
        "type": "object",
        "additionalProperties": False,
        "required": ["workflow", "operation_id", "payload"],
        "properties": {
            "workflow": {"const": name},
            "operation_id": {
                **_text(MAX_OPERATION_ID, 1),
                "description": "Your own name for this request, unique for good within workflow and tenant.",
            },
            "subject": {
                "anyOf": [_text(MAX_SUBJECT, 1), {"type": "null"}],
                "description": "On whose behalf it is; they never vote on it.",
            },
            "tenant": {**_text(MAX_TENANT, 0), "description": "Keeps operation_ids of several customers apart."},
            "payload": {"$ref": f"#/components/schemas/{name}.payload"},
        },
    }
    return {
        f"{name}.submission": submission,
        f"{name}.payload": payload,
        **{f"{name}.{part}": schema for part, schema in parts.items()},
    }


def _submit_operation(submissions: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "operationId": "submit",
        "summary": "Submit a request",
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": {"oneOf": submissions} if submissions else {"not": {}}}},
        },
        "responses": {
            "202": {
                "description": "Stored, or stored before with this payload (replayed).",
                "headers": {"Location": {"schema": {"type": "string"}, "required": True}},
                "content": _json("Receipt"),
            },
            **_refusals(
                ("401", "No token, or an unknown or disabled one."),
                ("403", "The policy permits none of the workflow's actions to you."),
                ("409", "The operation_id was used before with another payload; nothing was stored."),
                ("413", "The body is too large."),
                ("415", "The body is not application/json."),
                ("422", "Fields are wrong; `errors` names each with its reason."),
                ("503", "The database does not answer; send the same again later, nothing is doubled."),
            ),
        },
    }


def _standing_operation() -> dict[str, Any]:
    return {
        "operationId": "standing",
        "summary": "Ask how a request stands",
        "parameters": [
            {"name": "request_id", "in": "path", "required": True, "schema": {"type": "string", "format": "uuid"}}
        ],
        "responses": {
            "200": {"description": "How it stands.", "content": _json("Standing")},
            **_refusals(
                ("401", "No token, or an unknown or disabled one."),
                ("404", "There is no such request, or another principal submitted it and you oversee none."),
                ("503", "The database does not answer."),
            ),
        },
    }


def _refusals(*refusals: tuple[str, str]) -> dict[str, Any]:
    return {
        status: {
            "description": description,
            "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
            **({"headers": {"WWW-Authenticate": {"schema": {"type": "string"}}}} if status == "401" else {}),
        }
        for status, description in refusals
    }


def _text(longest: int, shortest: int) -> dict[str, Any]:
    return {"type": "string", "minLength": shortest, "maxLength": longest, "pattern": _NO_CONTROL}


def _json(name: str) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": f"#/components/schemas/{name}"}}}


def _object(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "required": list(properties),
        "properties": properties,
    }


_STRING: Final = {"type": "string"}
_INSTANT: Final = {"type": "string", "format": "date-time"}
_ID: Final = {"type": "string", "format": "uuid"}

_RECEIPT: Final = _object(
    request_id=_ID,
    workflow=_STRING,
    operation_id=_STRING,
    batch_key=_STRING,
    received_at=_INSTANT,
    replayed={"type": "boolean", "description": "It was in already with this payload; nothing was stored again."},
)

_STANDING: Final = _object(
    request_id=_ID,
    workflow=_STRING,
    operation_id=_STRING,
    state={"type": "string", "enum": [state.value for state in State]},
    reason={"type": ["string", "null"], "description": "Why it is parked or how it ended, for people."},
    batch_key=_STRING,
    received_at=_INSTANT,
    closed_at={"type": ["string", "null"], "format": "date-time"},
)

_PROBLEM: Final = _object(
    type=_STRING,
    title=_STRING,
    status={"type": "integer"},
    detail=_STRING,
    errors={"type": "array", "items": _object(field=_STRING, reason=_STRING)},
)
