"""The chains of requests, of one or of a whole batch, read to be verified."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from policies.audit import FIRST, AuditEvent, AuditHead
from resources.store.claim import FIRST as BEFORE_ALL
from resources.store.queries import query

PAGE = 500
"""Streams held in memory at once."""


@dataclass(frozen=True, slots=True)
class Chain:
    """One stream as it is stored."""

    stream: str
    events: list[AuditEvent]
    head: AuditHead | None


def request_chain(connection: sa.Connection, request_id: uuid.UUID) -> Chain:
    """The chain of one request. Read it in one snapshot: an event appended in between would look like damage."""
    stream = f"request:{request_id}"
    rows = connection.execute(query("stream_events"), {"streams": [stream]}).all()
    head = connection.execute(query("stream_head"), {"stream": stream}).one_or_none()
    return Chain(stream, _events(rows), None if head is None else AuditHead(head.seq, head.hash))


def batch_chains(connection: sa.Connection, workflow: str, batch: str) -> Iterator[Chain]:
    """The chain of every request in a batch, page by page."""
    after: uuid.UUID | None = BEFORE_ALL
    while after is not None:
        page = connection.execute(
            query("batch_streams"), {"workflow": workflow, "batch": batch, "after": after, "limit": PAGE}
        ).all()
        stored: dict[str, list[sa.Row[Any]]] = {f"request:{row.id}": [] for row in page}
        for event in connection.execute(query("stream_events"), {"streams": list(stored)}):
            stored[event.stream].append(event)
        for row in page:
            stream = f"request:{row.id}"
            head = None if row.hash is None else AuditHead(row.seq, row.hash)
            yield Chain(stream, _events(stored[stream]), head)
        after = page[-1].id if len(page) == PAGE else None


def _events(rows: Sequence[sa.Row[Any]]) -> list[AuditEvent]:
    previous = [FIRST, *(row.hash for row in rows)]
    return [
        AuditEvent(
            stream=row.stream,
            seq=row.seq,
            type=row.type,
            at=datetime.fromisoformat(row.at),
            role=row.role,
            actor=row.actor,
            payload=row.payload,
            previous_hash=before,
            hash=row.hash,
        )
        for row, before in zip(rows, previous[:-1], strict=True)
    ]
