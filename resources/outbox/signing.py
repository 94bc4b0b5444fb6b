"""Signatures by Standard Webhooks 1.0: HMAC-SHA256 over id, time of the attempt and body."""

from __future__ import annotations

import binascii
import hmac
import json
import re
import time
from base64 import b64decode, b64encode
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from policies.errors import DefinitionError, NotAuthenticated

PREFIX: Final = "whsec_"
TOLERANCE: Final = timedelta(minutes=5)


def signing_key(secret: str, where: str) -> bytes:
    """The key that `whsec_<base64>` stands for.

    Raises:
        DefinitionError: it has another form or not 24 to 64 bytes. The message never repeats it.
    """
    try:
        key = b64decode(secret.removeprefix(PREFIX), validate=True) if secret.startswith(PREFIX) else b""
    except (binascii.Error, ValueError):
        key = b""
    if not 24 <= len(key) <= 64:
        raise DefinitionError(f"{where}: write {PREFIX} and then 24 to 64 random bytes in base64")
    return key


def signature(key: bytes, event_id: str, timestamp: str, body: bytes) -> str:
    """The value of the header `webhook-signature`."""
    signed = f"{event_id}.{timestamp}.".encode() + body
    return f"v1,{b64encode(hmac.digest(key, signed, 'sha256')).decode()}"


def verify_webhook(
    headers: Mapping[str, str],
    body: bytes,
    secret: str,
    *,
    now: float | None = None,
    tolerance: timedelta = TOLERANCE,
) -> dict[str, Any]:
    """For consumers: the CloudEvent that `body` holds, once its signature is known to be made with `secret`.

    It may have come before: remember its `id` in the transaction that acts on it, and act on no id twice.

    Args:
        headers: of the request; names in any case.
        body: of the request, byte for byte as it was received.
        secret: `whsec_...`, as the sender has it.
        now: seconds since 1970; the clock's if left out.
        tolerance: how far the time of the attempt may lie from `now`.

    Raises:
        NotAuthenticated: a header is missing, the time is too far away, or no signature fits.
        DefinitionError: `secret` has not the form of a secret.
    """
    key = signing_key(secret, "verify_webhook, secret")
    known = {name.lower(): value for name, value in headers.items()}
    event_id, timestamp = known.get("webhook-id", ""), known.get("webhook-timestamp", "")
    if not event_id or re.fullmatch(r"[0-9]{1,12}", timestamp) is None:
        raise NotAuthenticated("the request has no webhook-id or no webhook-timestamp; do not act on it")
    if abs(int(timestamp) - (time.time() if now is None else now)) > tolerance.total_seconds():
        raise NotAuthenticated("the webhook-timestamp is too far from this clock; do not act on it, compare the clocks")
    expected = signature(key, event_id, timestamp, body).encode()
    given = known.get("webhook-signature", "").encode().split()
    # Every one is compared: how long it takes must not tell which one was nearly right.
    if not sum(hmac.compare_digest(one, expected) for one in given):
        raise NotAuthenticated("no webhook-signature fits the secret and the body; do not act on the request")
    event: dict[str, Any] = json.loads(body)
    return event
