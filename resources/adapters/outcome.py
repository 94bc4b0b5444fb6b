"""One call to a provider, turned into a value: whatever an adapter returns or raises is classified here alone."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeAlias

from policies.actions import Action
from policies.errors import NotExecuted
from policies.outcomes import Done, Refused
from policies.redaction import UNSTORABLE, clipped
from resources.adapters.base import Adapter, secrets_of
from resources.exception_text import exception_text
from resources.secrets import scrubbed

MAX_TEXT = 500
"""Longest text kept of what a provider says in words (reference, code, reason, exception message)."""

MAX_SNAPSHOT = 200
"""Longest snapshot: it is a fingerprint that a person may compare, not the state itself."""

MAX_WAIT = timedelta(days=365)
"""Longest wait that a provider may ask for; the deadline of the request ends it sooner."""

MAX_RESULT_BYTES = 16_384
"""Largest kept result; a larger one is replaced by a note: the effect is done and must be recorded."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """Nobody knows whether the effect happened; `reason` names the exception, bounded and free of secrets."""

    reason: str


@dataclass(frozen=True, slots=True)
class Unread:
    """The outside state could not be read; `reason` is bounded and free of secrets."""

    reason: str


CallOutcome: TypeAlias = Done | Refused | NotExecuted | Unknown


def call(adapter: Adapter, action: Action, key: str) -> CallOutcome:
    """Executes `action` under `key` at an opened adapter. Never raises an `Exception`; an interrupt passes through."""
    try:
        answer = adapter.execute(action, key)
    except Exception as error:  # noqa: BLE001  # to classify whatever comes is what this is for
        return _classified(adapter, error)
    return _settled(adapter, answer) or Unknown(f"execute returned {type(answer).__name__}, neither Done nor Refused")


def look_up(adapter: Adapter, key: str) -> CallOutcome | None:
    """What the provider of an opened adapter knows of `key`; None: nothing. `NotExecuted`: ask again later."""
    try:
        answer = adapter.look_up(key)
    except Exception as error:  # noqa: BLE001  # to classify whatever comes is what this is for
        return _classified(adapter, error)
    if answer is None:
        return None
    return _settled(adapter, answer) or Unknown(f"look_up returned {type(answer).__name__}, not Done, Refused or None")


def snapshot(adapter: Adapter, action: Action) -> str | Unread | None:
    """The fingerprint of the outside state that `action` rests on, as an opened adapter reads it now."""
    try:
        found: object = adapter.snapshot(action)
    except Exception as error:  # noqa: BLE001  # whatever comes, the state was not read
        return Unread(_kept(adapter, exception_text(error)))
    if found is None:
        return None
    if not isinstance(found, str) or not 0 < len(found) <= MAX_SNAPSHOT:
        return Unread(f"snapshot returned {type(found).__name__}, no text of 1 to {MAX_SNAPSHOT} characters")
    if found != _kept(adapter, found):
        return Unread("snapshot returned a text with a secret or with characters that cannot be stored")
    return found


def _classified(adapter: Adapter, error: Exception) -> NotExecuted | Unknown:
    if isinstance(error, NotExecuted):
        return NotExecuted(_kept(adapter, str(error)), retry_after=_seconds(error.retry_after))
    return Unknown(_kept(adapter, exception_text(error)))


def _settled(adapter: Adapter, answer: object) -> Done | Refused | None:
    if isinstance(answer, Done):
        return Done(_kept(adapter, str(answer.reference)), _kept_result(adapter, answer.result))
    if isinstance(answer, Refused):
        return Refused(_kept(adapter, str(answer.code)), _kept(adapter, str(answer.reason)))
    return None


def _kept(adapter: Adapter, text: str) -> str:
    """The text that may be stored and shown: no secret, nothing hidden or unstorable, bounded."""
    return clipped(scrubbed(text, secrets_of(adapter)), MAX_TEXT)


def _kept_result(adapter: Adapter, result: Any) -> dict[str, Any]:
    if not result:
        return {}
    try:
        text = json.dumps(result, ensure_ascii=False, allow_nan=False, default=str)
    except (TypeError, ValueError, RecursionError):
        return {"omitted": "the provider's result has no JSON form"}
    if len(text.encode("utf-8", "replace")) > MAX_RESULT_BYTES:
        return {"omitted": f"the provider's result is larger than {MAX_RESULT_BYTES} bytes"}
    # A result that the database cannot hold would make a done effect unknown, so such characters are replaced.
    kept = _clean(json.loads(text), secrets_of(adapter))
    return kept if isinstance(kept, dict) else {"value": kept}


def _clean(value: Any, secrets: tuple[str, ...]) -> Any:
    if isinstance(value, str):
        return UNSTORABLE.sub("\ufffd", scrubbed(value, secrets))
    if isinstance(value, list):
        return [_clean(item, secrets) for item in value]
    if isinstance(value, dict):
        return {_clean(key, secrets): _clean(item, secrets) for key, item in value.items()}
    return value


def _seconds(retry_after: object) -> float | None:
    if not isinstance(retry_after, (int, float)) or not math.isfinite(retry_after) or retry_after < 0:
        return None
    return min(float(retry_after), MAX_WAIT.total_seconds())
