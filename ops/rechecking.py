"""Before an effect: is everything that released the proposal still so? Policy and preconditions are evaluated again."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping, Sequence

import sqlalchemy as sa

from ops.batch import RECORDS_UNAVAILABLE, Batch, Counts
from ops.executing import Execution
from ops.facts import gather
from ops.judging import judge, stored_demand
from ops.keeping import LeaseKeeper
from ops.looking_up import Missing, look_up
from ops.parking import PAUSE_WAIT, Failed, park, wait_or_give_up
from ops.snapshots import NOT_BEGUN, changes, take_snapshots
from policies.approval import still_satisfied
from policies.risk import Assessment, assess
from policies.states import Event, State
from policies.validation import Validation
from resources.failpoints import Failpoint, reach
from resources.look_ups import behind
from resources.store.claim import Lease
from resources.store.contention import again_when_contended
from resources.store.effects import mark_rechecked
from resources.store.engine import transaction
from resources.store.ledger import LedgerEvent, append
from resources.store.moves import Move, Postponement, advance, postpone
from resources.store.stages import release_claims

READ_WINDOW = 10.0
"""Seconds in which outside state is read for the requests that go on together; the others come after them."""

TOO_OLD = 20.0
"""Seconds since it was read after which nothing is judged by it: too little would be left of the 30 to start in."""


@again_when_contended
def recheck(
    batch: Batch, lease: Lease, executions: Sequence[Execution]
) -> tuple[list[Execution], list[Execution], Counts]:
    """The executions that may go on, those that there was no time to look at, and what became of the others.

    A judgement of less than 20 seconds ago is taken as it is (`start_effects` takes one of 30). Same or weaker demand
    than what released the proposal: go. Otherwise a new round, or, once an effect was begun, a person: never executed.
    """
    due = [one for one in executions if not one.row.rechecked]
    if not due:
        return list(executions), [], Counts()
    began = time.monotonic()
    seen = _look_outside(batch, lease, due)
    later = [one for one in due if one.id not in seen]
    due = [one for one in due if one.id in seen]
    keys = {one.id: behind(one.case.sealed) for one in due}
    records, missing = look_up(batch, keys, LeaseKeeper(batch, lease).keep)
    lacking = [one for one in due if one.id in missing]
    due = [one for one in due if one.id not in missing]
    unread = [Failed(one.id, one.row.attempts, reason) for one in due if isinstance(reason := seen[one.id], str)]
    if (took := time.monotonic() - began) > TOO_OLD:
        if missing:  # it took so long because of these; without them the others are looked at anew
            later, due = later + due, []
        why = f"what it rests on took {took:.0f} s to read; after {TOO_OLD:.0f} s it is too old to start anything by"
        unread = [Failed(one.id, one.row.attempts, why) for one in due]
    blind = missing.keys() | {failed.id for failed in unread}
    due = [one for one in due if one.id not in blind]
    stale: list[tuple[Execution, str]] = []
    with transaction(batch.engine) as connection:
        facts = gather(connection, batch, [one.case for one in due], take=False)
        for one in due:
            roles = [] if one.row.disabled else one.row.roles
            validation = judge(batch.workflow, batch.policy, one.case, roles, records)
            now = assess(one.case.sealed, validation, facts[one.id], batch.policy, batch.workflow.rules)
            changed_outside = _changed(one, seen[one.id])
            if not still_satisfied(stored_demand(one.row.demand), now):
                stale.append((one, _why(validation, now)))
            elif changed_outside:
                stale.append((one, changed_outside))
        left = {one.id for one, _ in stale} | blind
        agreeing = [one.id for one in due if one.id not in left]
        rechecked = mark_rechecked(connection, lease.token, agreeing, age=time.monotonic() - began)
        changed = [one for one in due if one.id in rechecked and one.row.policy_version != batch.policy.version]
        append(connection, [_covered(one, batch.policy.version) for one in changed], batch.actor)
        counts = _send_back(connection, batch, lease, stale)
        counts += _put_off(connection, batch, lease, lacking, missing)
        counts += wait_or_give_up(connection, batch, lease, "execute", State.EXECUTING, unread)
        reach(Failpoint.RECORDING_RECHECK)
    reach(Failpoint.RECHECK_RECORDED)
    left.update(one.id for one in later)
    return [one for one in executions if one.id not in left], later, counts


def _look_outside(batch: Batch, lease: Lease, due: Sequence[Execution]) -> Mapping[uuid.UUID, dict[str, str] | str]:
    """What the state that the remaining actions rest on is now, for those of which it was read before."""
    wanted = [
        (one.id, action)
        for one in due
        for action, state in zip(one.case.sealed.actions, one.states, strict=True)
        if state in NOT_BEGUN and action.action_id in (one.row.snapshots or {})
    ]
    nothing: dict[uuid.UUID, dict[str, str] | str] = {one.id: {} for one in due}
    found = take_snapshots(batch, wanted, LeaseKeeper(batch, lease).keep, seconds=READ_WINDOW)
    unasked = {request_id for request_id, _ in wanted} - found.keys()
    return {request_id: seen for request_id, seen in (nothing | dict(found)).items() if request_id not in unasked}


def _put_off(
    connection: sa.Connection,
    batch: Batch,
    lease: Lease,
    lacking: Sequence[Execution],
    missing: Mapping[uuid.UUID, Missing],
) -> Counts:
    """What lacks a record is not executed now; where its service is down that is no attempt."""
    failures = [Failed(one.id, one.row.attempts, missing[one.id].reason) for one in lacking if missing[one.id].alone]
    waits = [
        Postponement(one.id, PAUSE_WAIT, missing[one.id].reason, attempt=False)
        for one in lacking
        if not missing[one.id].alone
    ]
    postpone(connection, waits, lease.token)
    counts = wait_or_give_up(connection, batch, lease, "execute", State.EXECUTING, failures)
    return counts + Counts({RECORDS_UNAVAILABLE: len(waits)})


def _changed(one: Execution, now: dict[str, str] | str) -> str:
    assert isinstance(now, dict)  # what could not be read is not judged
    states = zip(one.case.sealed.actions, one.states, strict=True)
    return changes(one.row.snapshots or {}, now, [action.action_id for action, state in states if state in NOT_BEGUN])


def _covered(one: Execution, version: str) -> LedgerEvent:
    """What released the proposal also satisfies a policy that changed since."""
    return LedgerEvent(
        one.id,
        "approval.still_satisfied",
        {"proposal": one.case.sealed.hash.hex(), "approved_under": one.row.policy_version, "policy_version": version},
    )


def _why(validation: Validation, now: Assessment) -> str:
    if validation.verdict == "refused":
        return "no longer valid: " + "; ".join(finding.message for finding in validation.findings)
    because = "; ".join(reason.because for reason in now.reasons)
    return f"policy {now.policy_version} now says {now.decision} ({now.tier}): {because}"


def _send_back(connection: sa.Connection, batch: Batch, lease: Lease, stale: Sequence[tuple[Execution, str]]) -> Counts:
    begun = [(one.id, f"stale after an effect was begun: {why}") for one, why in stale if one.begun]
    moves = [
        Move(one.id, State.EXECUTING, Event.APPROVAL_STALE, why, new_round=True) for one, why in stale if not one.begun
    ]
    moved = advance(connection, moves, lease.token)
    release_claims(connection, list(moved))  # the new round takes them again if it may
    append(
        connection,
        [
            LedgerEvent(move.id, "approval.stale", {"event": move.event, "state": move.to, "reason": move.reason})
            for move in moves
            if move.id in moved
        ],
        batch.actor,
    )
    return Counts({"stale": len(moved)}) + park(connection, batch, lease.token, "execute", State.EXECUTING, begun)
