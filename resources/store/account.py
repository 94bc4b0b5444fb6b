"""The account of one request: everything the store knows of it, for people who look into it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from resources.store.engine import Duty, engine_for, transaction
from resources.store.inbox import find_request
from resources.store.queries import query


@dataclass(frozen=True, slots=True)
class Account:
    """One request as it stands. What has not happened yet is None; `output` is what the model said, as kept.

    `payload` is what was received, with what was added since: `inputs` says which fields, by whom and when.
    """

    request_id: UUID
    workflow: str
    workflow_version: str
    operation_id: str
    initiator: str
    subject: str | None
    batch_key: str
    state: str
    reason: str | None
    attempts: int
    received_at: datetime
    closed_at: datetime | None
    payload: bytes
    output_kind: str | None
    output: bytes | None
    model: str | None
    prompt_version: str | None
    proposal_hash: str | None
    verdict: str | None
    findings: Sequence[dict[str, Any]] | None
    tier: str | None
    decision: str | None
    mode: str | None
    reasons: Sequence[dict[str, Any]] | None
    policy_version: str | None
    effects: Sequence[dict[str, Any]] | None
    inputs: Sequence[dict[str, Any]] | None


def read_account(database_url: str, name: str) -> Account:
    """The account of the request that `name` means (see `find_request`, whose RequestRefused it raises).

    Read by the operator's login: payloads are nobody else's to read outside a review document.
    """
    with transaction(engine_for(Duty.OPERATOR, database_url)) as connection:
        found = find_request(connection, name)
        return Account(*connection.execute(query("request_account"), {"request_id": found.request_id}).one())
