"""Start effects, send them while the start is good, and record each group of outcomes as it arrives."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from types import TracebackType
from typing import Self

import sqlalchemy as sa

from ops.batch import CHUNK, Batch, Counts
from ops.executing import Execution
from ops.keeping import LeaseKeeper
from ops.parallel import in_threads
from ops.write_behind import WriteBehind
from policies.actions import Action
from policies.effects import EffectState
from policies.errors import NotExecuted
from policies.outcomes import Done, Refused
from policies.refusals import Refusal
from resources.adapters.base import Adapter, opened
from resources.adapters.outcome import Unknown, call
from resources.failpoints import SendingPoints, reach
from resources.store.claim import Lease
from resources.store.contention import again_when_contended
from resources.store.effects import Outcome, Start, Started, start_effects
from resources.store.engine import transaction

START_WINDOW = 5.0
"""Seconds for which a start is good: what was not sent by then is started anew, with authority counted anew."""

FIRST_GROUP = 32
"""Effects started together before the provider's pace is known."""

OUTCOME_WAIT = 0.25
"""Seconds an outcome waits for company before it is recorded: what a crash would leave to be looked up."""


@dataclass(frozen=True, slots=True)
class Sending:
    """One effect to start and send."""

    action_type: str
    action: Action
    start: Start


@dataclass(frozen=True, slots=True)
class Direction:
    """Forward or back: what a request sends next, what follows from outcomes, and from refusals to start."""

    next: Callable[[Execution], Sending | None]
    settle: Callable[[sa.Connection, Batch, Lease, Sequence[Execution], Sequence[Outcome]], Counts]
    refuse: Callable[[sa.Connection, Batch, Lease, Sequence[tuple[Execution, Refusal, timedelta]]], Counts]
    points: SendingPoints


class Sender:
    """Sends effects for one step: adapters opened once, group sizes learnt from the provider's pace.

    `counts` is complete once the block has ended.
    """

    def __init__(self, batch: Batch, direction: Direction) -> None:
        self.counts = Counts()
        self._batch = batch
        self._direction = direction
        self._stack = ExitStack()
        self._adapters: dict[str, Adapter] = {}
        self._group_sizes: dict[str, int] = {}
        self._told: list[Counts] = []
        self._writing = WriteBehind()

    def __enter__(self) -> Self:
        self._stack.enter_context(self._writing)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, raised, trace)
        self.counts += sum(self._told, Counts())

    def after(self, task: Callable[[], None]) -> None:
        """Run a task once what was sent before is recorded."""
        self._writing.do(task)

    def adapter(self, action_type: str) -> Adapter:
        """The opened adapter of an action type: given its own secret and no other, only now and only here."""
        if action_type not in self._adapters:
            live = opened(self._batch.workflow.adapter_for(action_type))
            self._stack.callback(live.close)
            self._adapters[action_type] = live
        return self._adapters[action_type]

    def send(self, lease: Lease, executions: Sequence[Execution]) -> None:
        """Carry each request's effects as far as they go now, one effect of each request after the other.

        The last outcomes may still be on their way into the store afterwards; `after` comes behind them.
        """
        going = list(executions)
        while going and self._batch.time_left():
            by_type: dict[str, list[tuple[Execution, Sending]]] = {}
            for one in going:
                sending = self._direction.next(one)
                if sending is not None:
                    by_type.setdefault(sending.action_type, []).append((one, sending))
            # A request goes on to its next effect only if this one was done just now, and recorded.
            going = []
            for action_type, ready in by_type.items():
                for group in self._groups(action_type, ready):
                    done = self._send_group(lease, action_type, group)
                    going += [one for one, _ in group if one.id in done and len(one.states) > 1]
            if going:
                self._writing.wait()

    def _groups(
        self, action_type: str, ready: Sequence[tuple[Execution, Sending]]
    ) -> Iterator[Sequence[tuple[Execution, Sending]]]:
        at = 0
        semantics = self.adapter(action_type).semantics
        # Of what a dead worker had started at a blind provider nobody can say what was sent: one call a thread.
        most = min(semantics.max_in_flight or CHUNK, semantics.concurrency if semantics.blind else CHUNK)
        while at < len(ready):
            size = min(self._group_sizes.get(action_type, FIRST_GROUP), most)
            yield ready[at : at + size]
            at += size

    def _send_group(self, lease: Lease, action_type: str, group: Sequence[tuple[Execution, Sending]]) -> set[uuid.UUID]:
        """Start and send one group; returns whose effect is done."""
        adapter, points = self.adapter(action_type), self._direction.points
        provider = self._batch.workflow.catalogue.entries[action_type].adapter
        timeout = adapter.semantics.timeout.total_seconds()
        keeper = LeaseKeeper(self._batch, lease, timeout)
        keeper.keep()
        executions = [one for one, _ in group]
        by_id = {one.id: (one, sending) for one, sending in group}
        started_at = time.monotonic()
        going = self._start(lease, provider, by_id)

        def send_one(answer: Started) -> Outcome:
            if time.monotonic() - started_at > START_WINDOW or not keeper.holds(answer.request_id, timeout):
                return Outcome(answer.request_id, answer.ordinal, answer.key, EffectState.INTENDED)
            reach(points.calling)
            told = call(adapter, by_id[answer.request_id][1].action, answer.key)
            reach(points.answered)
            return outcome_of(answer, told)

        done: set[uuid.UUID] = set()
        arrived: list[Outcome] = []
        sent, recorded_at = 0, time.monotonic()
        for _, outcome in in_threads(send_one, going, adapter.semantics.concurrency, keeper.keep):
            arrived.append(outcome)
            sent += outcome.state is not EffectState.INTENDED or outcome.error is not None
            if outcome.state is EffectState.DONE:
                done.add(outcome.request_id)
            if time.monotonic() - recorded_at >= OUTCOME_WAIT:
                self._writing.do(partial(self._record, lease, executions, arrived))
                arrived, recorded_at = [], time.monotonic()
        if arrived:
            self._writing.do(partial(self._record, lease, executions, arrived))
        semantics = adapter.semantics
        if len(done) < len(going) or semantics.blind or semantics.max_in_flight:
            # The next start asks the store what is in flight and how the provider fares: it must know of this group.
            self._writing.wait()
        self._learn_pace(action_type, sent, time.monotonic() - started_at)
        return done

    @again_when_contended
    def _start(
        self, lease: Lease, provider: str, ready: Mapping[uuid.UUID, tuple[Execution, Sending]]
    ) -> list[Started]:
        """Start what may start, and send where it belongs what may not."""
        points = self._direction.points
        with transaction(self._batch.engine) as connection:
            answers = start_effects(connection, lease.token, provider, [sending.start for _, sending in ready.values()])
            refused = [
                (ready[answer.request_id][0], Refusal(answer.refusal), timedelta(seconds=answer.wait_seconds))
                for answer in answers
                if answer.refusal is not None
            ]
            counts = self._direction.refuse(connection, self._batch, lease, refused)
            reach(points.starting)
        self._told.append(counts)
        reach(points.started)
        return [answer for answer in answers if answer.refusal is None]

    @again_when_contended
    def _record(self, lease: Lease, executions: Sequence[Execution], outcomes: Sequence[Outcome]) -> None:
        with transaction(self._batch.engine) as connection:
            counts = self._direction.settle(connection, self._batch, lease, executions, outcomes)
        self._told.append(counts)
        reach(self._direction.points.recorded)

    def _learn_pace(self, action_type: str, sent: int, seconds: float) -> None:
        """The next group is as large as the provider takes in a third of the start window."""
        if sent:
            fits = int(sent * START_WINDOW / 3 / max(seconds, 1e-3))
            last = self._group_sizes.get(action_type, FIRST_GROUP)
            self._group_sizes[action_type] = max(1, min(fits, last * 4, CHUNK))


def outcome_of(started: Started, answer: Done | Refused | NotExecuted | Unknown) -> Outcome:
    """What the answer to one call makes of a started effect."""
    base = (started.request_id, started.ordinal, started.key)
    if isinstance(answer, Done):
        return Outcome(*base, EffectState.DONE, answer.reference, answer.result)
    if isinstance(answer, Refused):
        return Outcome(*base, EffectState.REFUSED, error=f"{answer.code}: {answer.reason}")
    if isinstance(answer, NotExecuted):
        return Outcome(*base, EffectState.INTENDED, error=str(answer), retry_after=answer.retry_after)
    return Outcome(*base, EffectState.UNKNOWN, error=answer.reason)
