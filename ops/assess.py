"""Step `assess`: take the claims, find the tier, and release, ask or refuse."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from ops.batch import Batch, Counts
from ops.facts import gather
from ops.judging import Case, demand_document, last_id, read_cases, stored_validation
from ops.later_rounds import end, with_what_stands
from ops.parking import Failed, park, send_to_review, wait_or_give_up
from ops.snapshots import any_taken, take_snapshots
from policies.risk import Assessment, Facts
from policies.risk import assess as find_tier
from policies.states import Event, State
from policies.validation import Validation
from resources.failpoints import Failpoint, reach
from resources.store.engine import transaction
from resources.store.isolation import write_in_halves
from resources.store.ledger import LedgerEvent, append
from resources.store.moves import Move, advance
from resources.store.stages import AssessmentRow, due_assessment, insert_assessments

Validated = tuple[Case, Validation]
Assessed = tuple[Case, Assessment]
Seen = Mapping[tuple[uuid.UUID, int, int], Mapping[str, str] | str]
"""Snapshots by request, revision and round, or why one could not be read."""


def assess(batch: Batch) -> Counts:
    """Write one assessment for each validated proposal and move it where the policy in force says."""
    counts = Counts()

    def page(after: uuid.UUID) -> uuid.UUID | None:
        seen = _look_outside(batch, after)
        with transaction(batch.engine) as connection:
            last = _page(connection, batch, after, seen, counts)
            if last is not None:
                reach(Failpoint.RECORDING_ASSESSMENTS)
        if last is not None:
            reach(Failpoint.ASSESSMENTS_RECORDED)
        return last

    batch.pages(page)
    return counts


def _look_outside(batch: Batch, after: uuid.UUID) -> Seen | None:
    """The outside state that the next page rests on, read while nothing is locked; None where no adapter reads any."""
    if not any_taken(batch.workflow):
        return None
    with transaction(batch.engine) as connection:
        rows = due_assessment(connection, batch.page(after))
    cases = [case for _, case in read_cases(batch.run, rows)[0]]
    found = take_snapshots(batch, [(case.id, action) for case in cases for action in case.sealed.actions], batch.beat)
    return {_name(case): found[case.id] for case in cases}


def _name(case: Case) -> tuple[uuid.UUID, int, int]:
    return case.id, case.revision, case.round


def _page(
    connection: sa.Connection, batch: Batch, after: uuid.UUID, seen: Seen | None, counts: Counts
) -> uuid.UUID | None:
    rows = due_assessment(connection, batch.page(after))
    if not rows:
        return None
    read, unreadable = read_cases(batch.run, rows)
    # What came in meanwhile is left to the next pass.
    if seen is not None:
        read = [(row, case) for row, case in read if _name(case) in seen]
    snapshots, unread = _told_apart(read, seen or {})
    cases = [(case, stored_validation(row)) for row, case in read if case.id not in unread]
    failures = [Failed(row.id, row.attempts, unread[row.id]) for row, _ in read if row.id in unread]

    # Older judgements, and snapshots that took their time, are looked at anew before anything starts.
    fresh = {row.id for row in rows if row.fresh} if seen is None else set()

    def write(part: Sequence[Validated]) -> None:
        facts = gather(connection, batch, [case for case, _ in part], take=True)
        counts.update(_write(connection, batch, part, facts, snapshots, fresh))

    refused = write_in_halves(connection, cases, write)
    counts.update(send_to_review(connection, batch, State.PROPOSAL_READY, unreadable))
    unstored = [(case.id, why) for (case, _), why in refused]
    counts.update(park(connection, batch, None, "assess", State.PROPOSAL_READY, unstored))
    counts.update(wait_or_give_up(connection, batch, None, "assess", State.PROPOSAL_READY, failures))
    return last_id(rows)


def _told_apart(
    read: Sequence[tuple[Any, Case]], seen: Seen
) -> tuple[Mapping[uuid.UUID, Mapping[str, str]], Mapping[uuid.UUID, str]]:
    """The snapshots of each request, and of those that lack one the reason."""
    found = {case.id: seen.get(_name(case), {}) for _, case in read}
    return (
        {request_id: snapshots for request_id, snapshots in found.items() if not isinstance(snapshots, str)},
        {request_id: reason for request_id, reason in found.items() if isinstance(reason, str)},
    )


def _write(
    connection: sa.Connection,
    batch: Batch,
    part: Sequence[Validated],
    facts: Mapping[uuid.UUID, Facts],
    snapshots: Mapping[uuid.UUID, Mapping[str, str]],
    fresh: set[uuid.UUID],
) -> Counts:
    assessed = [
        (case, find_tier(case.sealed, validation, facts[case.id], batch.policy, batch.workflow.rules))
        for case, validation in part
    ]
    insert_assessments(
        connection,
        [_row(case, assessment, snapshots[case.id]) for case, assessment in assessed],
        policy_version=batch.policy.version,
        policy_hash=bytes.fromhex(batch.policy.hash),
    )
    first = {case.id: _move(case, assessment, fresh) for case, assessment in assessed}
    # In shadow mode nothing comes of a request, so it must not hold a claim against those that follow.
    over = {case.id: case.round for case, _ in assessed if first[case.id].event in _ENDINGS}
    endings = with_what_stands(connection, [(first[one], in_round) for one, in_round in over.items()])
    end(connection, "assess", endings)
    advance(connection, [move for move in first.values() if move.id not in over])
    last = first | {move.id: move for move in endings}
    moves = [last[case.id] for case, _ in assessed]
    append(
        connection,
        [_event(case, assessment, move) for (case, assessment), move in zip(assessed, moves, strict=True)],
        batch.actor,
    )
    return Counts(move.to.value for move in moves)


_ENDINGS = (Event.POLICY_REFUSED, Event.SHADOW_RECORDED)


def _move(case: Case, assessment: Assessment, fresh: set[uuid.UUID]) -> Move:
    if assessment.mode == "shadow":
        return Move(
            case.id, State.PROPOSAL_READY, Event.SHADOW_RECORDED, f"shadow: would have been {assessment.decision}"
        )
    if assessment.decision == "auto":
        return Move(case.id, State.PROPOSAL_READY, Event.AUTO_RELEASED, rechecked=case.id in fresh)
    because = "; ".join(reason.because for reason in assessment.reasons) or "the policy's decision for this tier"
    event = Event.APPROVAL_REQUIRED if assessment.decision == "review" else Event.POLICY_REFUSED
    return Move(case.id, State.PROPOSAL_READY, event, because)


def _row(case: Case, assessment: Assessment, snapshots: Mapping[str, str]) -> AssessmentRow:
    return AssessmentRow(
        case.id,
        case.revision,
        case.round,
        assessment.tier.value,
        assessment.decision,
        assessment.mode,
        [{"tier": one.tier, "code": one.code, "because": one.because} for one in assessment.reasons],
        demand_document(assessment.demand),
        snapshots,
    )


def _event(case: Case, assessment: Assessment, move: Move) -> LedgerEvent:
    return LedgerEvent(
        case.id,
        "assessment.recorded",
        {
            "event": move.event,
            "state": move.to,
            "proposal": case.sealed.hash.hex(),
            "tier": assessment.tier,
            "decision": assessment.decision,
            "mode": assessment.mode,
            "reasons": [one.code for one in assessment.reasons],
            "policy_version": assessment.policy_version,
        },
    )
