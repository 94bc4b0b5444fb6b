"""Requests in `needs_review`: where the model abstained or only a person can tell. Read by the operator."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from resources.store.engine import Duty, engine_for, transaction
from resources.store.queries import query

MAX_LINES: Final = 200
"""Requests of one page, those received first."""


@dataclass(frozen=True, slots=True)
class NeedsReview:
    """One request that waits for a person, and why."""

    request_id: UUID
    workflow: str
    batch_key: str
    operation_id: str
    initiator: str
    reason: str | None
    received_at: datetime


def needing_review(database_url: str) -> list[NeedsReview]:
    """What waits in `needs_review`, received first, at most MAX_LINES."""
    with transaction(engine_for(Duty.OPERATOR, database_url)) as connection:
        return [NeedsReview(*row) for row in connection.execute(query("needs_review"), {"limit": MAX_LINES})]
