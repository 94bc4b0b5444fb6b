"""Step `request_approval`: build what a reviewer will see, once, and ask."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from ops.batch import Batch, Counts
from ops.judging import Case, last_id, read_cases, stored_demand, stored_validation
from ops.parking import park, send_to_review
from policies.amounts import amounts_in
from policies.approval import review_document, review_hash
from policies.risk import Assessment, Reason
from policies.sealing import SealedAction
from policies.states import State
from policies.tiers import Tier
from resources.failpoints import Failpoint, reach
from resources.store.approvals import ApprovalRow, announce_asked, insert_approval_requests
from resources.store.engine import transaction
from resources.store.isolation import write_in_halves
from resources.store.stages import due_approval_requests


def request_approval(batch: Batch) -> Counts:
    """Open an approval request, with its review document and expiry, for each request that waits for people."""
    counts = Counts()

    def page(after: uuid.UUID) -> uuid.UUID | None:
        with transaction(batch.engine) as connection:
            last = _page(connection, batch, after, counts)
            if last is not None:
                reach(Failpoint.RECORDING_APPROVAL_REQUESTS)
        if last is not None:
            reach(Failpoint.APPROVAL_REQUESTS_RECORDED)
        return last

    batch.pages(page)
    return counts


def _page(connection: sa.Connection, batch: Batch, after: uuid.UUID, counts: Counts) -> uuid.UUID | None:
    rows = due_approval_requests(connection, batch.page(after))
    if not rows:
        return None
    read, unreadable = read_cases(batch.run, rows)

    def write(part: Sequence[tuple[Any, Case]]) -> None:
        asked = [_ask(batch, row, case) for row, case in part]
        opened = insert_approval_requests(connection, asked)
        told = {one.request_id: _announced(batch, one) for one in asked if one.request_id in opened}
        announce_asked(connection, told)
        counts["asked"] += len(opened)

    refused = write_in_halves(connection, read, write)
    counts.update(send_to_review(connection, batch, State.AWAITING_APPROVAL, unreadable))
    unstored = [(case.id, why) for (_, case), why in refused]
    counts.update(park(connection, batch, None, "request_approval", State.AWAITING_APPROVAL, unstored))
    return last_id(rows)


def _ask(batch: Batch, row: Any, case: Case) -> ApprovalRow:
    demand = stored_demand(row.demand)
    assert demand is not None  # only a review waits for people, and the table refuses a review without demand
    validation = stored_validation(row)
    reasons = tuple(Reason(Tier(one["tier"]), one["code"], one["because"]) for one in row.reasons)
    assessment = Assessment(Tier(row.tier), "review", reasons, demand, row.policy_version, "live")
    document = review_document(
        sealed=case.sealed,
        validation=validation,
        assessment=assessment,
        workflow=batch.workflow.name,
        initiator=row.initiator_name,
        subject=row.subject,
        request_fields=case.fields,
        trust=batch.workflow.request.trust(),
        approval_round=case.round,
        edited_by=row.editors,
        supplied_by=row.suppliers,
    )
    people = {row.subject, row.initiator_name, row.initiator_external_id, *validation.parties} - {None}
    return ApprovalRow(
        approval_id=uuid.uuid4(),
        request_id=case.id,
        revision=case.revision,
        round=case.round,
        proposal_hash=case.sealed.hash,
        document=document,
        review_hash=review_hash(document),
        tier=row.tier,
        roles=list(demand.roles),
        quorum=demand.people,
        initiator=row.initiator,
        excluded_people=sorted(people),
        expires_after=demand.expires_after,
        remind_after=demand.remind_after,
        amounts=[asked for action in case.sealed.actions for asked in _amounts(action)],
        escalations=row.demand["escalations"],
    )


def _amounts(action: SealedAction) -> list[dict[str, Any]]:
    """What of an action a voter's own limits must cover: each of its amounts, or its type alone where it has none."""
    name = action.action_type.name
    amounts = [
        {"action_type": name, "currency": amount.currency, "minor": amount.minor}
        for _, amount in amounts_in(action.action)
    ]
    return amounts or [{"action_type": name}]


def _announced(batch: Batch, asked: ApprovalRow) -> dict[str, Any]:
    """What the ledger and those who are notified learn; the rest is for the page where one decides."""
    return {
        "workflow": batch.workflow.name,
        "approval": asked.approval_id,
        "proposal": asked.proposal_hash.hex(),
        "review": asked.review_hash.hex(),
        "tier": asked.tier,
        "roles": asked.roles,
        "people": asked.quorum,
        "expires_after_seconds": asked.expires_after.total_seconds(),
    }
