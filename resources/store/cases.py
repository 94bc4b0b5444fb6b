"""What waits for an operator: dead letters, and effects of which nobody knows what became. Read by the operator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from policies.errors import RequestRefused
from resources.store.engine import Duty, engine_for, transaction
from resources.store.inbox import find_request
from resources.store.queries import query


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """One case. A request can have had several, at most one of them open."""

    request_id: UUID
    workflow: str
    batch_key: str
    operation_id: str
    state: str
    step: str
    failure: str
    trace_id: str
    opened_at: datetime
    closed_at: datetime | None
    closed_by: str | None
    resolution: str | None


@dataclass(frozen=True, slots=True)
class Case:
    """Everything that a person needs to decide: the request, its effects, and every case it ever had.

    `payload` is what was received, and where `supplied`, what was added since as well.
    """

    request_id: UUID
    workflow: str
    workflow_version: str
    batch_key: str
    operation_id: str
    state: str
    reason: str | None
    trace_id: str
    ledger_stream: str
    payload: bytes
    supplied: bool
    effects: Sequence[dict[str, Any]]
    letters: list[DeadLetter]


@dataclass(frozen=True, slots=True)
class UnclearEffect:
    """An effect that is unknown or late. `waits_for`: `look-up` or `undo` by a run, or `person`."""

    key: str
    request_id: UUID
    workflow: str
    operation_id: str
    action_type: str
    provider: str
    state: str
    waits_for: str
    first_sent_at: datetime
    outcome_at: datetime | None
    provider_reference: str | None
    error: str | None
    attempts: int
    parameters: Any
    """With what it was started; None where that can no longer be read."""


def dead_letters(
    database_url: str,
    *,
    workflow: str | None = None,
    batch: str | None = None,
    failure: str | None = None,
    closed: bool = False,
) -> list[DeadLetter]:
    """Open cases, oldest first; with `closed`, also those that were. `failure`: a text that the failure contains."""
    arguments = {"workflow": workflow, "batch": batch, "failure": failure, "closed": closed, "request_id": None}
    with transaction(engine_for(Duty.OPERATOR, database_url)) as connection:
        return [DeadLetter(*row) for row in connection.execute(query("dead_letters"), arguments)]


def find_case(database_url: str, name: str) -> Case:
    """The case of the request that `name` means (see `find_request`).

    Raises:
        RequestRefused: `name` means no request, or several, or one that never had a case.
    """
    with transaction(engine_for(Duty.OPERATOR, database_url)) as connection:
        request_id = find_request(connection, name).request_id
        arguments = {"workflow": None, "batch": None, "failure": None, "closed": True, "request_id": request_id}
        letters = [DeadLetter(*row) for row in connection.execute(query("dead_letters"), arguments)]
        if not letters:
            raise RequestRefused(f"{name} was never a dead letter; `failsafe show {name}` says how it stands")
        found = connection.execute(query("case_of_request"), {"request_id": request_id}).mappings().one()
        return Case(**found, letters=letters)


def request_ids(database_url: str, names: Sequence[str]) -> list[UUID]:
    """The ids of the requests that these names mean. Raises RequestRefused as `find_request` does."""
    with transaction(engine_for(Duty.OPERATOR, database_url)) as connection:
        return [find_request(connection, name).request_id for name in names]


def unclear_effects(database_url: str, workflow: str | None = None) -> list[UnclearEffect]:
    """Effects that are unknown or late, first sent first."""
    with transaction(engine_for(Duty.OPERATOR, database_url)) as connection:
        rows = connection.execute(query("unclear_effects"), {"workflow": workflow})
        return [UnclearEffect(*row) for row in rows]
