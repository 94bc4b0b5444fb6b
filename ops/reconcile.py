"""Step `reconcile`: take work back from dead workers, let time-outs pass, and find out what unknown effects became."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from ops.asking import Answer, ask, may_repeat, unanswered
from ops.batch import CHUNK, Batch, Counts
from ops.compensate import BACKWARD
from ops.execute import FORWARD
from ops.executing import Execution, execution
from ops.judging import read_cases
from ops.keeping import LeaseKeeper
from ops.late_undo import undo_late
from ops.parallel import in_threads
from ops.parking import MAX_LONE_CRASHES, Failed, deadly, park, wait_or_give_up
from ops.restored import clear_restored
from ops.sending import Direction, Sender
from policies.actions import OnUnknown
from policies.attempts import MAX_ATTEMPTS, after_failure
from policies.effects import EffectState
from policies.outcomes import Done, Refused, Semantics
from policies.reconciliation import Absence, Verdict, after_absence
from policies.states import State
from resources.failpoints import Failpoint, reach
from resources.store.approvals import announce_waiting, expire_approvals
from resources.store.claim import Lease, release
from resources.store.contention import again_when_contended
from resources.store.effects import Outcome, executions, sweep_leases, unknown_effects
from resources.store.engine import transaction

ASSUMED = "done, as the catalogue says of this notification: nobody can find out"
"""What the result of an effect says that nobody saw done."""


def reconcile(batch: Batch) -> Counts:
    """Sweep expired leases, expire approvals, and find out what may have been done before anything is sent."""
    counts = Counts()
    counts["leases_swept"] += _sweep(batch, sweep_leases, Failpoint.SWEEPING, Failpoint.SWEPT)
    counts += clear_restored(batch)
    counts["expired"] += _sweep(batch, expire_approvals, Failpoint.EXPIRING, Failpoint.EXPIRED)
    counts["announced"] += _announce(batch)
    for state, direction in ((State.EXECUTING, FORWARD), (State.COMPENSATING, BACKWARD)):
        with Sender(batch, direction) as sender:
            for lease in batch.claimed(state, unknown=True):
                counts += _look_up_chunk(batch, lease, sender, state, direction)
    counts += undo_late(batch)
    return +counts


def _sweep(
    batch: Batch, sweep: Callable[[sa.Connection, str, str, int], int], before: Failpoint, after: Failpoint
) -> int:
    """Sweep page by page; returns how many requests that took."""
    swept, page = 0, CHUNK
    while page == CHUNK and batch.time_left():
        with transaction(batch.engine) as connection:
            page = sweep(connection, batch.workflow.name, batch.key, CHUNK)
            if page:
                reach(before)
        if page:
            reach(after)
        swept += page
    return swept


def _announce(batch: Batch) -> int:
    """Announce reminders and escalations whose time has come; returns how many."""
    announced, page = 0, CHUNK
    while page >= CHUNK and batch.time_left():
        with transaction(batch.engine) as connection:
            page = announce_waiting(connection, batch.workflow.name, batch.key, CHUNK)
        announced += page
    return announced


@again_when_contended
def _look_up_chunk(batch: Batch, lease: Lease, sender: Sender, state: State, direction: Direction) -> Counts:
    with transaction(batch.engine) as connection:
        # One more than elsewhere: a look-up changes nothing, and may settle what the other crashes left open.
        counts = park(connection, batch, lease.token, "reconcile", state, deadly(lease, MAX_LONE_CRASHES + 1))
        effects = unknown_effects(connection, lease)
        cases, unreadable = read_cases(batch.run, executions(connection, lease))
        # Code that cannot read the proposal cannot judge its effects either: a person must.
        counts += park(connection, batch, lease.token, "reconcile", state, unreadable)
    known = {case.id: execution(row, case) for row, case in cases}
    asked = [effect for effect in effects if effect.request_id in known]
    keeper = LeaseKeeper(batch, lease)
    learnt = _Learnt()
    concurrency = min((sender.adapter(effect.action_type).semantics.concurrency for effect in asked), default=1)
    for effect, answer in in_threads(
        lambda one: ask(sender, one.action_type, one.idempotency_key), asked, concurrency, keeper.keep
    ):
        semantics = sender.adapter(effect.action_type).semantics
        on_unknown = batch.workflow.catalogue.entries[effect.action_type].action_type.on_unknown
        learnt.add(semantics, on_unknown, known[effect.request_id], effect, answer)
    with transaction(batch.engine) as connection:
        counts += direction.settle(connection, batch, lease, list(known.values()), learnt.outcomes)
        counts += wait_or_give_up(connection, batch, lease, "reconcile", state, learnt.failures)
        counts += park(connection, batch, lease.token, "reconcile", state, learnt.for_a_person)
        release(connection, lease, [request.id for request in lease.requests])
        reach(Failpoint.RECORDING_LOOK_UPS)
    reach(Failpoint.LOOK_UPS_RECORDED)
    return counts


@dataclass(slots=True)
class _Learnt:
    """What the look-ups of one chunk said, by what follows from it."""

    outcomes: list[Outcome] = field(default_factory=list)
    failures: list[Failed] = field(default_factory=list)
    for_a_person: list[tuple[uuid.UUID, str]] = field(default_factory=list)

    def add(self, semantics: Semantics, on_unknown: OnUnknown, one: Execution, effect: Any, answer: Answer) -> None:
        base = (effect.request_id, effect.ordinal, effect.idempotency_key)
        if isinstance(answer, Done):
            self.outcomes.append(Outcome(*base, EffectState.DONE, answer.reference, answer.result))
        elif isinstance(answer, Refused):
            self.outcomes.append(Outcome(*base, EffectState.REFUSED, error=f"{answer.code}: {answer.reason}"))
        elif answer is not None:
            why, after = unanswered(answer)
            self.failures.append(Failed(one.id, one.row.attempts, why, after=after))
        else:
            absence = after_absence(
                semantics, since_first=effect.since_first, since_last=effect.since_last, on_unknown=on_unknown
            )
            self._absent(absence, one, base, may_repeat(semantics))

    def _absent(
        self, absence: Absence, one: Execution, base: tuple[uuid.UUID, int, str], told: dict[str, float] | None
    ) -> None:
        if absence.verdict is Verdict.WAIT:
            wait = absence.wait.total_seconds()
            self.failures.append(Failed(one.id, one.row.attempts, "its effect may still show", after=wait, tried=False))
        elif absence.verdict is Verdict.SEND_AGAIN:
            self.outcomes.append(Outcome(*base, EffectState.INTENDED, result=told))
            if after_failure(one.row.attempts) is None:
                why = f"{base[2]}: sent again and again, and the provider shows nothing of it"
                self.for_a_person.append((one.id, f"{why} (attempt {MAX_ATTEMPTS} of {MAX_ATTEMPTS})"))
        elif absence.verdict is Verdict.ASSUME_DONE:
            self.outcomes.append(Outcome(*base, EffectState.DONE, result={"assumed": ASSUMED}))
        else:
            self.for_a_person.append((one.id, f"{base[2]} may have happened; the provider cannot tell"))
