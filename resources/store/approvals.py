"""Asking people: the approval request with the review document as it will be shown."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import sqlalchemy as sa

from resources.store.queries import query


@dataclass(frozen=True, slots=True)
class ApprovalRow:
    """What is asked, of whom, and until when."""

    approval_id: uuid.UUID
    request_id: uuid.UUID
    revision: int
    round: int
    proposal_hash: bytes
    document: bytes
    review_hash: bytes
    tier: str
    roles: list[str]
    quorum: int
    initiator: uuid.UUID
    excluded_people: list[str]
    expires_after: timedelta
    remind_after: timedelta | None
    amounts: list[dict[str, Any]]
    """What a voter's own limits must cover: action type, currency and minor units, or a type that has no amount."""
    escalations: list[dict[str, Any]]
    """Seconds after which further roles may decide, with those roles."""


def insert_approval_requests(connection: sa.Connection, rows: Sequence[ApprovalRow]) -> set[uuid.UUID]:
    """Open approval requests and point each request to its own; returns the request ids."""
    if not rows:
        return set()
    written = connection.execute(
        query("insert_approval_requests"),
        {
            "approval_ids": [row.approval_id for row in rows],
            "ids": [row.request_id for row in rows],
            "revisions": [row.revision for row in rows],
            "rounds": [row.round for row in rows],
            "proposal_hashes": [row.proposal_hash for row in rows],
            "documents": [row.document for row in rows],
            "review_hashes": [row.review_hash for row in rows],
            "tiers": [row.tier for row in rows],
            "roles": [json.dumps(row.roles) for row in rows],
            "quorums": [row.quorum for row in rows],
            "initiators": [row.initiator for row in rows],
            "people": [json.dumps(row.excluded_people) for row in rows],
            "expires_after": [row.expires_after for row in rows],
            "remind_after": [row.remind_after for row in rows],
            "amounts": [json.dumps(row.amounts) for row in rows],
            "escalations": [json.dumps(row.escalations) for row in rows],
        },
    )
    return {row.id for row in written}


def announce_asked(connection: sa.Connection, asked: Mapping[uuid.UUID, dict[str, Any]]) -> None:
    """Put each new approval request into the ledger and the outbox."""
    if asked:
        connection.execute(
            sa.text("select announce_asked(cast(:streams as text[]), cast(cast(:payloads as text[]) as json[]))"),
            {
                "streams": [f"request:{request_id}" for request_id in asked],
                "payloads": [json.dumps(payload, default=str) for payload in asked.values()],
            },
        )


def announce_waiting(connection: sa.Connection, workflow: str, batch: str, limit: int) -> int:
    """Announce one page of reminders and escalations whose time has come; returns how many."""
    count: int = connection.execute(
        sa.text("select announce_waiting(:workflow, :batch, :limit)"),
        {"workflow": workflow, "batch": batch, "limit": limit},
    ).scalar_one()
    return count


def expire_approvals(connection: sa.Connection, workflow: str, batch: str, limit: int) -> int:
    """Expire one page of approval requests whose time is over; returns how many. Expiry never approves."""
    count: int = connection.execute(
        sa.text("select expire_approvals(:workflow, :batch, :limit)"),
        {"workflow": workflow, "batch": batch, "limit": limit},
    ).scalar_one()
    return count
