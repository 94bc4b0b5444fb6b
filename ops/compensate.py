"""Step `compensate`: undo, in reverse order, what a failed or cancelled proposal had already done."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from functools import partial

import sqlalchemy as sa

from ops.batch import Batch, Counts
from ops.executing import Execution, execution
from ops.judging import read_cases
from ops.parking import Failed, deadly, park, wait_or_give_up
from ops.refusing import RefusedStart, waiting
from ops.sending import Direction, Sender, Sending
from policies.compensation import Bucket, Undo, after_undo, buckets, next_undo, undo_of
from policies.effects import EffectState
from policies.errors import DefinitionError
from policies.refusals import MOVED_ON, WAITS
from policies.states import Event, State
from resources.failpoints import BACKWARD as BACKWARD_POINTS
from resources.failpoints import Failpoint, reach
from resources.store.claim import Lease, release
from resources.store.contention import again_when_contended
from resources.store.effects import Outcome, Start, executions, record_outcomes, report_late
from resources.store.engine import transaction
from resources.store.ledger import LedgerEvent, append
from resources.store.moves import WAITING, Move, advance, postpone
from resources.store.stages import release_claims


def compensate(batch: Batch) -> Counts:
    """Carry compensations on from where they stand; one that cannot be done opens a case for a person."""
    counts = Counts()
    with Sender(batch, BACKWARD) as sender:
        for lease in batch.claimed(State.COMPENSATING):
            going, found = _read(batch, lease)
            counts += found
            sender.send(lease, going)
            sender.after(partial(_release, batch, lease))
    return counts + sender.counts


@again_when_contended
def _read(batch: Batch, lease: Lease) -> tuple[list[Execution], Counts]:
    """What the lease would undo, without what only a person can."""
    with transaction(batch.engine) as connection:
        cases, unreadable = read_cases(batch.run, executions(connection, lease))
        going = [execution(row, case) for row, case in cases]
        impossible = [(one.id, why) for one in going if (why := _obstacle(one)) is not None]
        counts = _park(connection, batch, lease, [*deadly(lease), *unreadable, *impossible])
        counts += _conclude(connection, batch, lease, going, {})
    stopped = {one for one, _ in impossible}
    return [one for one in going if one.id not in stopped], counts


@again_when_contended
def _release(batch: Batch, lease: Lease) -> None:
    with transaction(batch.engine) as connection:
        release(connection, lease, [request.id for request in lease.requests])


def _reversible(one: Execution) -> list[bool]:
    return [action.action_type.reversible for action in one.case.sealed.actions]


def _undo(one: Execution, index: int) -> Undo:
    action = one.case.sealed.actions[index]
    return undo_of(action.action_type, action.values, one.references.get(action.ordinal))


def _obstacle(one: Execution) -> str | None:
    """Why an undo that is still to come cannot even be written down; None: all can."""
    for index, bucket in buckets(_reversible(one), one.states, one.undone).items():
        if bucket is Bucket.UNRESOLVED and one.states[index] is EffectState.DONE:
            try:
                _undo(one, index)
            except DefinitionError as error:
                return str(error)
    return None


def _next(one: Execution) -> Sending | None:
    index = next_undo(_reversible(one), one.states, one.undone)
    if index is None:
        return None
    undo, ordinal = _undo(one, index), one.case.sealed.actions[index].ordinal
    start = Start(one.id, ordinal, undo.parameters_hash, {"undo": None}, kind="compensation")
    return Sending(undo.action.action_type.name, undo.action, start)


def _settle(
    connection: sa.Connection, batch: Batch, lease: Lease, going: Sequence[Execution], outcomes: Sequence[Outcome]
) -> Counts:
    """Record outcomes of compensations; conclude the requests that are undone or can no longer be."""
    recorded = record_outcomes(connection, lease.token, outcomes)
    report_late(connection, [outcome for outcome in outcomes if outcome.key not in recorded])
    counts = Counts()
    by_id = {one.id: one for one in going}
    refusals: dict[uuid.UUID, str] = {}
    failures: list[Failed] = []
    touched: dict[uuid.UUID, Execution] = {}
    for outcome in outcomes:
        if outcome.key not in recorded:
            continue
        one = touched[outcome.request_id] = by_id[outcome.request_id]
        one.undone[outcome.ordinal - 1] = outcome.state
        counts[f"undo_{outcome.state}"] += 1
        if outcome.state is EffectState.REFUSED:
            refusals[one.id] = f"{outcome.key} was refused: {outcome.error}"
        elif outcome.state is not EffectState.DONE and outcome.error is not None:
            uncertain, after = outcome.state is EffectState.UNKNOWN, outcome.retry_after or 0.0
            failures.append(Failed(one.id, one.row.attempts, outcome.error, after, uncertain=uncertain))
    counts += _conclude(connection, batch, lease, list(touched.values()), refusals)
    counts += wait_or_give_up(connection, batch, lease, "compensate", State.COMPENSATING, failures)
    reach(Failpoint.RECORDING_UNDO)
    return counts


def _conclude(
    connection: sa.Connection,
    batch: Batch,
    lease: Lease,
    executions: Sequence[Execution],
    refusals: Mapping[uuid.UUID, str],
) -> Counts:
    """Move the requests of which nothing is left to undo: to their end, or to a person where something stays undone."""
    decided = [(one, after_undo(_reversible(one), one.states, one.undone)) for one in executions]
    undone = {one.id: one for one, event in decided if event is Event.UNDO_DONE}
    moves = [Move(one.id, State.COMPENSATING, Event.UNDO_DONE, _cause(one)) for one in undone.values()]
    moved = advance(connection, moves, lease.token)
    release_claims(connection, list(moved))
    append(
        connection,
        [
            LedgerEvent(
                move.id,
                "request.concluded",
                {"event": move.event, "state": move.to, "reason": move.reason, "buckets": _buckets(undone[move.id])},
            )
            for move in moves
            if move.id in moved
        ],
        batch.actor,
    )
    failed = [
        (one.id, refusals.get(one.id) or f"not undone: {_buckets(one)}")
        for one, event in decided
        if event is Event.UNDO_FAILED
    ]
    return Counts({"compensated": len(moved)}) + _park(connection, batch, lease, failed)


def _cause(one: Execution) -> str:
    """Why it is undone, without what it waited for meanwhile."""
    reason: str = one.row.reason or ""
    return reason.partition(WAITING)[0]


def _buckets(one: Execution) -> dict[str, str]:
    actions = one.case.sealed.actions
    found = buckets(_reversible(one), one.states, one.undone)
    return {actions[index].action_id: bucket.value for index, bucket in found.items()}


def _park(connection: sa.Connection, batch: Batch, lease: Lease, failed: Sequence[tuple[uuid.UUID, str]]) -> Counts:
    return park(connection, batch, lease.token, "compensate", State.COMPENSATING, failed)


def _refuse(connection: sa.Connection, batch: Batch, lease: Lease, refused: Sequence[RefusedStart]) -> Counts:
    """A compensation whose obstacle passes by itself waits; anything else it meets is for a person."""
    postpone(connection, waiting(refused), lease.token)
    for_a_person = [
        (one.id, f"not started: {refusal}") for one, refusal, _ in refused if refusal not in WAITS | MOVED_ON
    ]
    return _park(connection, batch, lease, for_a_person)


BACKWARD = Direction(_next, _settle, _refuse, BACKWARD_POINTS)
"""Undoing what was done, last first."""
