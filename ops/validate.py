"""Step `validate`: judge each new proposal by evidence, permission, limits and the records it rests on."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial

import sqlalchemy as sa

from ops.batch import RECORDS_UNAVAILABLE, Batch, Counts
from ops.judging import Case, judge, last_id, read_cases
from ops.later_rounds import end, with_what_stands
from ops.looking_up import look_up
from ops.parking import Failed, park, send_to_review, wait_or_give_up
from ops.write_behind import WriteBehind
from policies.states import Event, State
from policies.validation import Validation
from resources.failpoints import Failpoint, reach
from resources.look_ups import behind
from resources.store.contention import again_when_contended
from resources.store.engine import transaction
from resources.store.isolation import write_in_halves
from resources.store.ledger import LedgerEvent, append
from resources.store.moves import Move
from resources.store.stages import FindingsRow, due_validation, hold_proposals, insert_findings

Judged = tuple[Case, Validation]


def validate(batch: Batch) -> Counts:
    """Write findings for proposals of this round; what is refused ends here, what only a person can tell is parked."""
    counts = Counts()
    with WriteBehind() as writing:
        batch.pages(partial(_page, batch, writing, counts))
    return counts


def _page(batch: Batch, writing: WriteBehind, counts: Counts, after: uuid.UUID) -> uuid.UUID | None:
    with transaction(batch.engine) as connection:
        rows = due_validation(connection, batch.page(after))
    if not rows:
        return None
    cases, unreadable = read_cases(batch.run, rows)
    # Look-ups may take long, so no transaction is open meanwhile: each write asks again whether the request still
    # stands as it was read.
    records, missing = look_up(batch, {case.id: behind(case.sealed) for _, case in cases}, batch.beat)
    judged = [
        (case, judge(batch.workflow, batch.policy, case, [] if row.disabled else row.roles, records))
        for row, case in cases
        if case.id not in missing
    ]
    # Where a trusted service is down, the proposals wait, and a later run judges them.
    counts[RECORDS_UNAVAILABLE] += sum(not lacks.alone for lacks in missing.values())
    failed = [(case, missing[case.id].reason) for _, case in cases if case.id in missing and missing[case.id].alone]
    writing.do(partial(_record, batch, judged, unreadable, failed, counts))
    return last_id(rows)


@again_when_contended
def _record(
    batch: Batch,
    judged: Sequence[Judged],
    unreadable: Sequence[tuple[uuid.UUID, str]],
    failed: Sequence[tuple[Case, str]],
    counts: Counts,
) -> None:
    with transaction(batch.engine) as connection:
        written = _write(connection, batch, judged) + send_to_review(
            connection, batch, State.PROPOSAL_READY, unreadable
        )
        if failed:
            written += _put_off(connection, batch, failed)
        reach(Failpoint.RECORDING_FINDINGS)
    counts.update(written)
    reach(Failpoint.FINDINGS_RECORDED)


def _write(connection: sa.Connection, batch: Batch, judged: Sequence[Judged]) -> Counts:
    counts = Counts()

    def write(part: Sequence[Judged]) -> None:
        written = insert_findings(connection, [_row(case, validation) for case, validation in part])
        kept = [(case, validation) for case, validation in part if case.id in written]
        refusals = [(_refusal(case, found), case.round) for case, found in kept if found.verdict == "refused"]
        moves = with_what_stands(connection, refusals)
        end(connection, "validate", moves)
        ends = {move.id: move for move in moves}
        append(connection, [_event(case, validation, ends.get(case.id)) for case, validation in kept], batch.actor)
        counts.update(validation.verdict for _, validation in kept)

    refused = write_in_halves(connection, judged, write)
    return counts + park(
        connection, batch, None, "validate", State.PROPOSAL_READY, [(case.id, why) for (case, _), why in refused]
    )


def _put_off(connection: sa.Connection, batch: Batch, failed: Sequence[tuple[Case, str]]) -> Counts:
    used = hold_proposals(connection, batch.opened_at, [(case.id, case.revision, case.round) for case, _ in failed])
    failures = [Failed(case.id, used[case.id], reason) for case, reason in failed if case.id in used]
    return wait_or_give_up(connection, batch, None, "validate", State.PROPOSAL_READY, failures)


def _refusal(case: Case, validation: Validation) -> Move:
    first = next(finding for finding in validation.findings if finding.severity == "refuse")
    return Move(case.id, State.PROPOSAL_READY, Event.VALIDATION_REFUSED, f"{first.code}: {first.message}")


def _row(case: Case, validation: Validation) -> FindingsRow:
    return FindingsRow(
        case.id,
        case.revision,
        case.round,
        validation.verdict,
        [asdict(finding) for finding in validation.findings],
        validation.weakest_trust.value,
        sorted(validation.parties),
    )


def _event(case: Case, validation: Validation, move: Move | None) -> LedgerEvent:
    payload = {
        "proposal": case.sealed.hash.hex(),
        "verdict": validation.verdict,
        "findings": [finding.code for finding in validation.findings],
        "weakest_trust": validation.weakest_trust,
    }
    if move is not None:
        payload |= {"event": move.event, "state": move.to}
    return LedgerEvent(case.id, "validation.recorded", payload)
