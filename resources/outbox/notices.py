"""What people are told: a line about each event that needs them, with a link to the desk.

It is made of our own words, of names that the policy gives, and of ids. Nothing of it comes from a request, a document
or a model, so nobody outside can write into a channel where people trust what they read; what is asked stands on the
desk.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from policies.errors import DefinitionError
from policies.redaction import clipped

if TYPE_CHECKING:
    from resources.outbox.events import OutboxEvent

DESK_URL: Final = "FAILSAFE_DESK_URL"
MOST_NAMES: Final = 200

_URL = re.compile(r"https?://[A-Za-z0-9.:\[\]_~/-]{1,200}")


def desk_url() -> str:
    """Where the review desk is, from FAILSAFE_DESK_URL; empty where that is not set.

    Raises:
        DefinitionError: it is no address that a message could hold.
    """
    url = os.environ.get(DESK_URL, "").rstrip("/")
    if url and _URL.fullmatch(url) is None:
        raise DefinitionError(f"{DESK_URL}: write the address of the review desk as https://host/path")
    return url


def notice(event: OutboxEvent, desk: str) -> str | None:
    """What people are told about an event; None: it is nothing that needs them."""
    payload = json.loads(event.payload)
    said = _said(event.type, payload)
    if said is None:
        return None
    workflow = clipped(str(payload.get("workflow", "")), MOST_NAMES)
    path = f"approvals/{payload['approval']}" if "approval" in payload else "cases"
    where = f"{desk}/{path}" if desk else f"request {event.aggregateid}"
    return f"{workflow}: {said} {where}".removeprefix(": ")


def for_slack(text: str) -> bytes:
    """The body of a Slack-compatible message, in which no name can become a mention or a link with another text."""
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return json.dumps({"text": escaped}).encode()


def _said(kind: str, payload: Mapping[str, Any]) -> str | None:
    tier, roles = payload.get("tier"), clipped(", ".join(payload.get("roles", ())), MOST_NAMES)
    if kind == "approval.requested":
        return f"approval is needed ({tier} tier): {payload['people']} of {roles}."
    if kind == "approval.reminder":
        return f"approval is still needed ({tier} tier) from {roles}; it expires {payload['expires_at']}."
    if kind == "approval.escalated":
        return f"nobody decided yet ({tier} tier): {roles} may decide now; it expires {payload['expires_at']}."
    if kind == "approval.expired":
        return f"nobody decided in time, so nothing was approved; the request is {_words(payload['state'])}."
    if kind == "case.opened":
        return f"a case waits for an operator (step {payload['step']}); the request is {_words(payload['state'])}."
    return None


def _words(state: str) -> str:
    return state.replace("_", " ")
