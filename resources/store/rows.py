"""Rows as they are submitted: what makes one acceptable, and what is said about one that is not."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError, to_json

from policies.actions import Request
from policies.errors import CanonicalFormError
from policies.hashing import payload_fingerprint
from policies.redaction import UNSTORABLE

MAX_PAYLOAD: Final = 1_048_576
"""Bytes of a payload. Larger documents belong in a store of their own, named by the payload."""

MAX_OPERATION_ID: Final = 255
MAX_SUBJECT: Final = 200

_COLUMNS = frozenset({"operation_id", "subject", "payload"})
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")


@dataclass(frozen=True, slots=True)
class RowProblem:
    """Why a row is not in. `row` counts from 1 (a file's line); `received` is the row as it came."""

    row: int
    field: str
    reason: str
    received: object = dataclasses.field(default=None, repr=False, compare=False)
    conflict: bool = False
    """Its operation_id is in use with another payload."""


@dataclass(frozen=True, slots=True)
class AcceptableRow:
    """A row that fits the workflow's request schema; `payload` is its JSON as received."""

    number: int
    operation_id: str
    subject: str | None
    payload: bytes
    fingerprint: bytes
    received: Mapping[str, Any] = dataclasses.field(repr=False, compare=False)


def check_row(number: int, received: Mapping[str, Any], request: type[Request]) -> AcceptableRow | list[RowProblem]:
    """The row ready to be stored, or everything that is wrong with it. No row makes it raise.

    A row has `operation_id` (text), `payload` (a mapping, or JSON as bytes) and may have `subject` (text). In a
    mapping, dates, decimals and UUIDs become text.
    """
    found = [(str(name), "is not a column; put it into payload") for name in received if name not in _COLUMNS]
    operation_id, subject = received.get("operation_id"), received.get("subject") or None
    found += text_problems("operation_id", operation_id, MAX_OPERATION_ID)
    if subject is not None:
        found += text_problems("subject", subject, MAX_SUBJECT)
    payload = fingerprint = b""
    try:
        payload = _payload_bytes(received.get("payload"))
        fingerprint = payload_fingerprint(payload)
        request.model_validate_json(payload)
    except (CanonicalFormError, PydanticSerializationError) as error:
        half_character = "surrogates not allowed" in str(error)
        found.append(("payload", HALF_CHARACTER if half_character else str(error)))
    except ValidationError as error:
        found += [
            (".".join(["payload", *map(str, detail["loc"])]), detail["msg"])
            for detail in error.errors(include_url=False, include_context=False, include_input=False)
        ]
    except Exception as error:  # noqa: BLE001 # the request class's own validators run here on what somebody sent
        found.append(("payload", f"the validators of {request.__name__} failed with {type(error).__name__}"))
    if found:
        return [RowProblem(number, name, reason, received) for name, reason in found]
    assert isinstance(operation_id, str)
    return AcceptableRow(number, operation_id, subject, payload, fingerprint, received)


def _payload_bytes(payload: object) -> bytes:
    if isinstance(payload, Mapping):
        payload = to_json(payload, inf_nan_mode="constants")  # so that NaN is refused by name, not stored as null
    if not isinstance(payload, bytes):
        raise CanonicalFormError("must be an object with the request's fields")
    if len(payload) > MAX_PAYLOAD:
        raise CanonicalFormError(f"is {len(payload)} bytes long; at most {MAX_PAYLOAD} are accepted")
    return payload


HALF_CHARACTER = (
    "holds half of a character (a lone surrogate), which no text may; repair where it was cut and send it again"
)


def text_problems(name: str, value: object, longest: int) -> list[tuple[str, str]]:
    """What is wrong with a text that names something: it must be text, not empty, and on one line."""
    if not isinstance(value, str) or not value:
        return [(name, "must be text and not empty")]
    if len(value) > longest:
        return [(name, f"is {len(value)} characters long; at most {longest} are accepted")]
    if UNSTORABLE.search(value) or _CONTROL.search(value):
        return [(name, "holds a control character or a lone surrogate")]
    return []
