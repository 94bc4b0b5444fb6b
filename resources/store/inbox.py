"""What waits for a person, and the review document of each approval request. Read as the reviewer, who also votes."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

import sqlalchemy as sa

from policies.approval import review_hash
from policies.errors import FailsafeError, RequestRefused
from resources.store.engine import Duty, engine_for, transaction
from resources.store.queries import query


@dataclass(frozen=True, slots=True)
class FoundRequest:
    """A request that somebody named, and the approval request if that was what they named."""

    request_id: UUID
    workflow: str
    operation_id: str
    state: str
    reason: str | None
    approval_id: UUID | None


@dataclass(frozen=True, slots=True)
class WaitingApproval:
    """One line of the inbox."""

    approval_id: UUID
    request_id: UUID
    workflow: str
    batch_key: str
    operation_id: str
    tier: str
    roles: list[str]
    votes_for: int
    quorum: int
    opened_at: datetime
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class Asked:
    """An approval request with the document a reviewer is shown and the two hashes that a vote is bound to.

    `outcome` is `open` only while votes are taken; afterwards it says how that ended. `request_state` is where the
    request stands now.
    """

    approval_id: UUID
    request_id: UUID
    workflow: str
    operation_id: str
    tier: str
    roles: list[str]
    votes_for: int
    quorum: int
    opened_at: datetime
    expires_at: datetime
    outcome: str
    proposal_hash: bytes
    review_hash: bytes
    document: bytes = field(repr=False)
    request_state: str


def find_request(connection: sa.Connection, name: str) -> FoundRequest:
    """The one request that `name` means: a request id, an approval request's id or an operation_id.

    Raises:
        RequestRefused: there is none, or several workflows have this operation_id.
    """
    try:
        named: UUID | None = UUID(name)
    except ValueError:
        named = None
    found = connection.execute(query("find_requests"), {"id": named, "name": name}).all()
    if not found:
        raise RequestRefused(f"no request, approval or operation_id is called {name!r}; see `failsafe inbox`")
    if len(found) > 1:
        ids = ", ".join(f"{row.request_id} ({row.workflow})" for row in found)
        raise RequestRefused(f"{name!r} names several requests; name one by its id: {ids}")
    row = found[0]
    approval_id = None if named == row.request_id or name == row.operation_id else named
    return FoundRequest(row.request_id, row.workflow, row.operation_id, row.state, row.reason, approval_id)


def waiting_approvals(database_url: str, workflow: str | None = None, tier: str | None = None) -> list[WaitingApproval]:
    """Open approval requests, those that expire first at the top."""
    with transaction(engine_for(Duty.REVIEWER, database_url)) as connection:
        rows = connection.execute(query("waiting_approvals"), {"workflow": workflow, "tier": tier})
        return [WaitingApproval(*row) for row in rows]


def find_asked(database_url: str, name: str) -> Asked | None:
    """The approval request that `name` means, by default the latest of its request; None if nobody was ever asked.

    Raises:
        RequestRefused: `name` means no request, or several.
        FailsafeError: the stored document is not the one its hash names; nobody may decide on it.
    """
    with transaction(engine_for(Duty.REVIEWER, database_url)) as connection:
        found = find_request(connection, name)
        row = connection.execute(
            query("asked_of_request"), {"request_id": found.request_id, "approval_id": found.approval_id}
        ).one_or_none()
    if row is None:
        return None
    asked = Asked(*row)
    if review_hash(asked.document) != asked.review_hash:
        raise FailsafeError(
            f"the review document of approval {asked.approval_id} does not match its hash; "
            "do not decide on it and tell the operator"
        )
    return asked


def batch_of(database_url: str, approval_id: UUID) -> tuple[str, str]:
    """Workflow and batch key of the request that an approval request is about.

    Raises:
        RequestRefused: there is no such approval request.
    """
    with transaction(engine_for(Duty.REVIEWER, database_url)) as connection:
        row = connection.execute(query("batch_of_approval"), {"approval_id": approval_id}).one_or_none()
    if row is None:
        raise RequestRefused(f"there is no approval request {approval_id}")
    return row.workflow, row.batch_key
