"""The ledger: events are appended through the database's function and read back to be verified."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from resources.store.queries import query

_ENCODER = json.JSONEncoder(separators=(",", ":"), default=str)


@dataclass(frozen=True, slots=True)
class LedgerEvent:
    """One thing to record about one request."""

    request_id: uuid.UUID
    type: str
    payload: dict[str, Any]

    @property
    def stream(self) -> str:
        """The request's own chain."""
        return f"request:{self.request_id}"


def append(connection: sa.Connection, events: Sequence[LedgerEvent], actor: str) -> None:
    """Append events in the transaction that makes them true.

    Payloads are stored and hashed as these bytes; untrusted text in them is escaped to ASCII, so that a NUL or a lone
    surrogate cannot stop the ledger.
    """
    if not events:
        return
    connection.execute(
        query("append_audit"),
        {
            "streams": [event.stream for event in events],
            "types": [event.type for event in events],
            "actors": [actor] * len(events),
            "payloads": [_ENCODER.encode(event.payload).encode() for event in events],
        },
    )
