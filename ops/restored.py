"""After a restore: what open requests did since the backup was taken is found out before any of it starts."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import sqlalchemy as sa

from ops.asking import ask, may_repeat, unanswered
from ops.batch import Batch, Counts
from ops.compensate import BACKWARD
from ops.execute import FORWARD
from ops.executing import Execution, execution
from ops.judging import read_cases
from ops.keeping import LeaseKeeper
from ops.parallel import in_threads
from ops.parking import MAX_LONE_CRASHES, Failed, deadly, park, wait_or_give_up
from ops.sending import Direction, Sender
from policies.catalogue import CatalogueEntry
from policies.compensation import recovery, undo_of
from policies.effects import EffectState
from policies.errors import DefinitionError, NotExecuted
from policies.outcomes import Done, Refused
from policies.reconciliation import Verdict, after_restore
from policies.states import State
from resources.adapters.outcome import Unknown
from resources.store.claim import Lease, release
from resources.store.contention import again_when_contended
from resources.store.effects import Outcome, Start, executions, record_outcomes
from resources.store.engine import transaction
from resources.store.restores import clear_requests, notice_restore, restored_keys, suspect_effects

ASSUMED = "done, as the catalogue says of this notification: the store was restored and nobody can find out"
"""What the result of an effect says that nobody saw done."""

_DIRECTIONS: dict[State, Direction] = {State.COMPENSATING: BACKWARD, State.EXECUTING: FORWARD}
_STATES = (*_DIRECTIONS, State.AWAITING_APPROVAL, State.PROPOSAL_READY)
"""Where a request may have done what the store forgot. One that had no proposal comes here once it has one."""


def clear_restored(batch: Batch) -> Counts:
    """Ask, key by key, what requests of before a restore may have done; adopt it, call a person, or clear them."""
    counts = Counts()
    with transaction(batch.engine) as connection:
        if not notice_restore(connection):
            return counts
    for state in _STATES:
        with Sender(batch, _DIRECTIONS.get(state, FORWARD)) as sender:
            for lease in batch.claimed(state, restored=True):
                counts += _clear_chunk(batch, lease, sender, state)
    return +counts


@dataclass(frozen=True, slots=True)
class _Candidate:
    """An effect that may have been done."""

    row: Any
    """Its key, and the ages that absence is judged by (columns of `sql/restored_keys.sql`)."""
    action_type: str
    start: Start | None
    """How it is written down; None: nothing that this request would do now, so if it was done a person must look."""


@dataclass(slots=True)
class _Found:
    """What is known of one request once its candidates were asked for."""

    one: Execution
    suspects: list[tuple[Start, str]] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)
    failed: Failed | None = None
    for_a_person: str | None = None

    def settle(self, candidate: _Candidate, provider: str, state: EffectState, **told: Any) -> None:
        """The candidate came to this."""
        assert candidate.start is not None
        self.suspects.append((candidate.start, provider))
        ordinal = candidate.start.ordinal
        self.outcomes.append(Outcome(self.one.id, ordinal, candidate.row.key, state, **told))

    def leave_to_a_person(self, untold: Sequence[str]) -> None:
        """One of these keys may have been used by another proposal. Redriven, the request comes to the same again."""
        perhaps = [*untold, *(outcome.key for outcome in self.outcomes if outcome.state is EffectState.INTENDED)]
        why = (
            f"{' or '.join(perhaps)} may have been done, perhaps by a proposal the store no longer holds, and the"
            " provider cannot tell: discard the request, and submit anew what was not done"
        )
        self.for_a_person = why if self.for_a_person is None else f"{self.for_a_person}; {why}"
        self.suspects, self.outcomes = [], []  # written down as begun, they would exclude the other proposal

    def wait(self, why: str, seconds: float, *, tried: bool) -> None:
        """Nothing can be said yet."""
        self.failed = Failed(self.one.id, self.one.row.attempts, why, after=seconds, tried=tried)


@again_when_contended
def _clear_chunk(batch: Batch, lease: Lease, sender: Sender, state: State) -> Counts:
    catalogue = batch.workflow.catalogue
    with transaction(batch.engine) as connection:
        epoch = notice_restore(connection)
        counts = park(connection, batch, lease.token, "restore", state, deadly(lease, MAX_LONE_CRASHES + 1))
        cases, unreadable = read_cases(batch.run, executions(connection, lease))
        keys: dict[uuid.UUID, list[Any]] = {}
        for row in restored_keys(connection, lease, sorted(catalogue.entries.keys() - catalogue.undo_types)):
            keys.setdefault(row.request_id, []).append(row)
    for action_type in {row.action_type for rows in keys.values() for row in rows} & catalogue.entries.keys():
        sender.adapter(action_type)  # opened here, and not by the thread that asks
    going = [execution(row, case) for row, case in cases]
    walk = partial(_walk, batch, sender, state, keys)
    found = [told for _, told in in_threads(walk, going, 1, LeaseKeeper(batch, lease).keep)]
    with transaction(batch.engine) as connection:
        counts += _record(connection, batch, lease, state, epoch, found)
        if state in _DIRECTIONS:  # elsewhere the step that comes next sees that it cannot read the proposal
            counts += park(connection, batch, lease.token, "restore", state, unreadable)
        release(connection, lease, [request.id for request in lease.requests])
    return counts


def _walk(batch: Batch, sender: Sender, state: State, keys: dict[uuid.UUID, list[Any]], one: Execution) -> _Found:
    """Ask for one effect after the other, in the order in which they could be done, up to the first that was not."""
    found, rows = _Found(one), keys.get(one.id, [])
    untold: list[str] = []
    begun = False
    try:
        going_back = state is State.COMPENSATING
        candidates = list(_undoing(one, rows) if going_back else (*_contradicting(one, rows), *_going_on(one, rows)))
    except DefinitionError as error:
        found.for_a_person = str(error)
        return found
    for candidate in candidates:
        entry = batch.workflow.catalogue.entries[candidate.action_type]
        if candidate.start is None and not entry.semantics.lookup:
            if candidate.row.replaceable and entry.action_type.on_unknown == "ask":
                untold.append(candidate.row.key)
            continue
        answer = ask(sender, candidate.action_type, candidate.row.key)
        begun = begun or isinstance(answer, Done | Refused)
        if rows[0].proposed_since and not entry.semantics.lookup and candidate.start is not None:
            found.for_a_person = (
                f"{candidate.row.key} may have done what another proposal said, and the provider cannot tell"
            )
            break
        goes_on = _absent(entry, candidate, found) if answer is None else _told(entry, state, candidate, answer, found)
        if not goes_on:
            break
    done = ", ".join(outcome.key for outcome in found.outcomes if outcome.state is EffectState.DONE)
    if done and found.for_a_person is None and (state not in _DIRECTIONS or rows[0].proposed_since):
        found.for_a_person = f"{done} was done after the backup was taken, by a decision the store no longer holds"
    if untold and not begun:
        found.leave_to_a_person(untold)
    return found


_SETTLED = (EffectState.REFUSED, EffectState.FENCED, EffectState.LATE)
"""Nothing that comes after one of these was ever begun."""


def _contradicting(one: Execution, rows: Sequence[Any]) -> Iterator[_Candidate]:
    """What another proposal or a later try may have done, and undos of what the store holds for done."""
    undos = {row.ordinal: row for row in rows if row.kind == "compensation"}
    for row in rows:
        if row.of_another:
            yield _Candidate(row, row.action_type, None)
    for action, was, undone in zip(one.case.sealed.actions, one.states, one.undone, strict=True):
        undo = action.action_type.undo
        if undo is not None and was is EffectState.DONE and undone is not EffectState.DONE:
            yield _Candidate(undos[action.ordinal], undo.action_type.name, None)


def _going_on(one: Execution, rows: Sequence[Any]) -> Iterator[_Candidate]:
    """The actions that are not done, in their order."""
    forward = {row.ordinal: row for row in rows if row.kind == "forward" and not row.of_another}
    for action, was in zip(one.case.sealed.actions, one.states, strict=True):
        row = forward[action.ordinal]
        if was in _SETTLED or row.given_up:
            return
        if was is not EffectState.DONE:
            start = Start(one.id, action.ordinal, action.parameters_hash, recovery(action.action_type, action.values))
            yield _Candidate(row, action.action_type.name, start)


def _undoing(one: Execution, rows: Sequence[Any]) -> Iterator[_Candidate]:
    """The undos that are still to come, last first."""
    undos = {row.ordinal: row for row in rows if row.kind == "compensation"}
    for action in reversed(one.case.sealed.actions):
        kind, was, undone = action.action_type, one.states[action.ordinal - 1], one.undone[action.ordinal - 1]
        if kind.undo is None or was is not EffectState.DONE or undone is EffectState.DONE:
            continue
        if undone in _SETTLED:
            return
        undo = undo_of(kind, action.values, one.references.get(action.ordinal))
        start = Start(one.id, action.ordinal, undo.parameters_hash, {"undo": None}, kind="compensation")
        yield _Candidate(undos[action.ordinal], kind.undo.action_type.name, start)


def _told(
    entry: CatalogueEntry,
    state: State,
    candidate: _Candidate,
    answer: Done | Refused | NotExecuted | Unknown,
    found: _Found,
) -> bool:
    """Take what the provider says of a candidate; whether what comes after it may have been done as well."""
    key = candidate.row.key
    if isinstance(answer, NotExecuted | Unknown):
        found.wait(*unanswered(answer), tried=True)
        return False
    if candidate.start is None:
        if isinstance(answer, Done):
            found.for_a_person = f"{key} was done after the backup was taken, which contradicts what the store holds"
        return isinstance(answer, Refused)
    if isinstance(answer, Done):
        found.settle(candidate, entry.adapter, EffectState.DONE, reference=answer.reference, result=answer.result)
        return True
    if state in _DIRECTIONS:  # elsewhere nothing was done; released again, it is refused again
        refusal = f"{answer.code}: {answer.reason}"
        found.settle(candidate, entry.adapter, EffectState.REFUSED, error=refusal)
    return False


def _absent(entry: CatalogueEntry, candidate: _Candidate, found: _Found) -> bool:
    """Judge a candidate that the provider does not show; whether what comes after it may have been done anyway."""
    row, semantics = candidate.row, entry.semantics
    absence = after_restore(
        semantics,
        since_received=row.since_received,
        since_restored=row.since_restored,
        on_unknown=entry.action_type.on_unknown,
    )
    if absence.verdict is Verdict.WAIT:
        why = "the store was restored, and what it did before may still show"
        found.wait(why, absence.wait.total_seconds(), tried=False)
        return False
    if candidate.start is None:
        return True
    if absence.verdict is Verdict.SEND_AGAIN:
        if semantics.lookup:
            return False
        found.settle(candidate, entry.adapter, EffectState.INTENDED, result=may_repeat(semantics))
        return True
    if absence.verdict is Verdict.ASSUME_DONE:
        found.settle(candidate, entry.adapter, EffectState.DONE, result={"assumed": ASSUMED})
        return True
    found.suspects.append((candidate.start, entry.adapter))
    found.for_a_person = f"{row.key} may have been done after the backup was taken, and the provider cannot tell"
    return False


def _record(
    connection: sa.Connection, batch: Batch, lease: Lease, state: State, epoch: int, found: Sequence[_Found]
) -> Counts:
    told = [one for one in found if one.failed is None]
    suspect_effects(connection, lease.token, [suspect for one in told for suspect in one.suspects])
    cleared = [one.one.id for one in told if one.for_a_person is None]
    counts = Counts({"cleared": clear_requests(connection, lease.token, cleared, epoch)})
    people = [(one.one.id, one.for_a_person) for one in told if one.for_a_person is not None]
    record_outcomes(connection, lease.token, _outcomes(one for one in told if one.for_a_person is not None))
    adopted = [one for one in told if one.for_a_person is None]
    if state not in _DIRECTIONS:
        record_outcomes(connection, lease.token, _outcomes(adopted))
    else:
        counts += _DIRECTIONS[state].settle(connection, batch, lease, [one.one for one in adopted], _outcomes(adopted))
    failures = [one.failed for one in found if one.failed is not None]
    counts += wait_or_give_up(connection, batch, lease, "restore", state, failures)
    return counts + park(connection, batch, lease.token, "restore", state, people)


def _outcomes(found: Iterable[_Found]) -> list[Outcome]:
    return [outcome for one in found for outcome in one.outcomes]
