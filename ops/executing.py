"""A request on its way through its effects, and what each outcome leads to."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from ops.batch import Batch, Counts
from ops.facts import learn
from ops.judging import Case
from ops.parking import Failed, park, wait_or_give_up
from policies.cancellation import after_cancel
from policies.effects import EffectState
from policies.saga import decide
from policies.sealing import SealedAction
from policies.states import Event, State
from resources.failpoints import Failpoint, reach
from resources.store.claim import Lease
from resources.store.effects import Outcome, cancellations, record_outcomes, report_late
from resources.store.ledger import LedgerEvent, append
from resources.store.moves import Move, advance
from resources.store.stages import release_claims


@dataclass(slots=True)
class Execution:
    """One leased request: its case, and the state of each action's effect in order (None: none yet)."""

    row: Any
    case: Case
    states: list[EffectState | None]
    undone: list[EffectState | None]
    """The state of each action's compensation."""
    references: dict[int, str | None]
    """The provider's own id of each effect, by ordinal."""
    unseen: set[int]
    """Ordinals of intended effects that may have happened: only their key makes it right to send them again."""

    @property
    def id(self) -> uuid.UUID:
        """The request's id."""
        return self.case.id

    @property
    def begun(self) -> bool:
        """Whether any effect was ever begun that may have reached a provider."""
        return bool(self.unseen) or any(state not in (None, EffectState.INTENDED) for state in self.states)

    def next_action(self) -> SealedAction | None:
        """The first action that is not done, if it may be started."""
        for action, state in zip(self.case.sealed.actions, self.states, strict=True):
            if state is not EffectState.DONE:
                return action if state in (None, EffectState.INTENDED) else None
        return None

    def event(self, *, cancelled: bool) -> Event | None:
        """What the effects so far amount to, where its cancellation was asked for or not."""
        if cancelled and self.unseen:
            return Event.GAVE_UP  # it will not be sent again, and nobody can look
        reversible = [one.action_type.reversible for one in self.case.sealed.actions]
        return (after_cancel(reversible, self.states) if cancelled else None) or decide(reversible, self.states)


def execution(row: Any, case: Case) -> Execution:
    """The execution of a row of `sql/executions.sql`."""
    one = Execution(row, case, [None] * len(case.sealed.actions), [None] * len(case.sealed.actions), {}, set())
    for ordinal, kind, state, reference, unseen in row.effects or []:
        (one.states if kind == "forward" else one.undone)[ordinal - 1] = EffectState(state)
        if kind == "forward":
            one.references[ordinal] = reference
            one.unseen.discard(ordinal)
            if unseen:
                one.unseen.add(ordinal)
    return one


def settle(
    connection: sa.Connection, batch: Batch, lease: Lease, executions: Sequence[Execution], outcomes: Sequence[Outcome]
) -> Counts:
    """Record outcomes and everything that follows from them, in the caller's one transaction.

    A request whose lease was lost is left as it is; what its provider said is kept in the ledger.
    """
    recorded = record_outcomes(connection, lease.token, outcomes)
    reach(Failpoint.RECORDING_OUTCOMES)
    lost = [outcome for outcome in outcomes if outcome.key not in recorded]
    report_late(connection, lost)
    counts = Counts({"lease_lost": len(lost)}) if lost else Counts()
    by_id = {one.id: one for one in executions}
    failures: list[Failed] = []
    touched: dict[uuid.UUID, Execution] = {}
    for outcome in outcomes:
        if outcome.key in recorded:
            one = by_id[outcome.request_id]
            one.states[outcome.ordinal - 1] = outcome.state
            if outcome.state is not EffectState.INTENDED:
                one.unseen.discard(outcome.ordinal)
            elif outcome.result is not None:
                one.unseen.add(outcome.ordinal)
            touched[one.id] = one
            counts[f"effects_{outcome.state}"] += 1
            if outcome.state is EffectState.UNKNOWN or (outcome.state is EffectState.INTENDED and outcome.error):
                failures.append(_failed(one, outcome))
    waiting = {failure.id for failure in failures}
    counts += conclude(connection, batch, lease, [one for one in touched.values() if one.id not in waiting])
    counts += wait_or_give_up(connection, batch, lease, "execute", State.EXECUTING, failures)
    reach(Failpoint.CONCLUDING)
    return counts


def _failed(one: Execution, outcome: Outcome) -> Failed:
    return Failed(
        one.id,
        one.row.attempts,
        outcome.error or "the outcome is unknown",
        after=outcome.retry_after or 0.0,
        uncertain=outcome.state is EffectState.UNKNOWN,
    )


def conclude(connection: sa.Connection, batch: Batch, lease: Lease, executions: Sequence[Execution]) -> Counts:
    """Move the leased requests whose effects amount to an event; a cancellation asked for by now is honoured."""
    cancelled = cancellations(connection, [one.id for one in executions])
    decided = {
        one.id: (one, event) for one in executions if (event := one.event(cancelled=one.id in cancelled)) is not None
    }
    moves = [
        Move(one.id, State.EXECUTING, event, "cancelled on request" if one.id in cancelled else _REASONS.get(event))
        for one, event in decided.values()
        if event is not Event.GAVE_UP
    ]
    still_ours = advance(connection, moves, lease.token)
    moved = [move for move in moves if move.id in still_ours]
    learn(connection, batch, [decided[move.id][0].case for move in moved if move.event is Event.EFFECTS_DONE])
    release_claims(connection, [move.id for move in moved if move.event in _WITHOUT_EFFECT])
    append(
        connection,
        [
            LedgerEvent(
                move.id,
                "request.concluded",
                {
                    "event": move.event,
                    "state": move.to,
                    "reason": move.reason,
                    "effects": decided[move.id][0].states,
                },
            )
            for move in moved
        ],
        batch.actor,
    )
    given_up = [(one.id, _why_given_up(one)) for one, event in decided.values() if event is Event.GAVE_UP]
    counts = Counts(move.to.value for move in moved)
    return counts + park(connection, batch, lease.token, "execute", State.EXECUTING, given_up)


def _why_given_up(one: Execution) -> str:
    if one.unseen:
        return "cancelled, but an effect may have happened and its provider cannot tell"
    if EffectState.LATE in one.states:
        return "an effect happened after it was settled otherwise"
    if EffectState.FENCED in one.states:
        return "an effect was found not done by a person; a redrive sends it under a new key"
    return "an action failed after one that cannot be undone"


_REASONS = {Event.EFFECT_REFUSED: "the provider refused the action", Event.UNDO_NEEDED: "a later action was refused"}
_WITHOUT_EFFECT = (Event.EFFECT_REFUSED, Event.CANCELLED)
"""Nothing was done, so nothing is claimed."""
