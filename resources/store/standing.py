"""How one request stands, for whoever submitted it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from resources.store.engine import Duty, engine_for, transaction
from resources.store.queries import query


@dataclass(frozen=True, slots=True)
class Standing:
    """A request's state and, where it is parked or has ended, why."""

    request_id: UUID
    workflow: str
    operation_id: str
    state: str
    reason: str | None
    batch_key: str
    received_at: datetime
    closed_at: datetime | None
    initiator: UUID


def read_standing(database_url: str, request_id: UUID) -> Standing | None:
    """How a request stands; None if there is none."""
    with transaction(engine_for(Duty.AUDITOR, database_url)) as connection:
        row = connection.execute(query("request_standing"), {"request_id": request_id}).one_or_none()
    return None if row is None else Standing(*row)
