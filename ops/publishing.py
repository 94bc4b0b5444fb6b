"""Publishing: claim what is due, deliver it outside any transaction, and record each group of answers as it arrives."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

import sqlalchemy as sa

from ops.parallel import in_threads
from policies.publishing import MOST_ATTEMPTS, wait_after
from resources.failpoints import Failpoint, reach
from resources.outbox.destination import LONGEST_TIMEOUT, Destination, NotTaken, OpenDestination
from resources.outbox.events import Claim, OutboxEvent, Wait, claim_events, give_back, mark_published, park
from resources.store.engine import Duty, engine_for, transaction
from resources.store.migrate import require_known_revision

CLAIMED: Final = 200
"""Events of one claim, each of another aggregate."""

CLAIM_LENGTH: Final = timedelta(seconds=2 * LONGEST_TIMEOUT)
"""A publisher that dies delays what it held by this; nothing is sent unless its claim outlasts the delivery."""

GROUP: Final = 50
GROUP_SECONDS: Final = 0.25
"""Answers recorded together: a crash between delivery and record delivers at most these again."""

OUTAGE: Final = 8
"""Deliveries in a row that failed without an answer about the event: the receiver is down, so the rest is not tried."""

RUN_SECONDS: Final = 120.0
"""Time budget of one run; the sensor starts the next."""


@dataclass(frozen=True, slots=True)
class Publisher:
    """The job-level resource: where events go, and which store they come from."""

    destination: Destination
    database_url: str
    run_seconds: float = RUN_SECONDS
    uniform: Callable[[], float] = random.random


@dataclass(slots=True)
class Published:
    """What one run came to."""

    published: int = 0
    postponed: int = 0
    parked: list[str] = field(default_factory=list)
    """Each event that was given up, with the reason."""
    outage: str = ""
    """Why the run stopped early: what the receiver, or the way to it, said last."""


def publish_events(publisher: Publisher) -> Published:
    """Deliver what is due until nothing is, the receiver is down, or the time is over.

    Raises:
        DefinitionError: a variable of the destination is missing or does not fit.
        SchemaMismatch: the store is at a revision that this code does not know.
    """
    engine = engine_for(Duty.WORKER, publisher.database_url)
    with transaction(engine) as connection:
        require_known_revision(connection)
    ends = time.monotonic() + publisher.run_seconds
    with publisher.destination.opened() as receiver:
        run = _Run(publisher, engine, receiver, ends)
        while run.goes_on():
            claim = claim_events(engine, limit=CLAIMED, length=CLAIM_LENGTH)
            if not claim.events:
                break
            reach(Failpoint.EVENTS_CLAIMED)
            run.deliver(claim)
    return run.result


@dataclass(frozen=True, slots=True)
class _NotSent:
    """The event was not sent: its claim might have ended first, the time is over, or the receiver is down."""


Answer = NotTaken | _NotSent | None
"""What became of one event; None: the receiver took it."""


@dataclass(slots=True)
class _Run:
    publisher: Publisher
    engine: sa.Engine
    receiver: OpenDestination
    ends: float
    result: Published = field(default_factory=Published)
    failed_in_a_row: int = 0
    counting: threading.Lock = field(default_factory=threading.Lock)

    def goes_on(self) -> bool:
        return time.monotonic() < self.ends and not self.result.outage

    def deliver(self, claim: Claim) -> None:
        answers: list[tuple[OutboxEvent, Answer]] = []
        recorded_at = time.monotonic()

        def record_due() -> None:
            nonlocal recorded_at
            if len(answers) >= GROUP or time.monotonic() - recorded_at >= GROUP_SECONDS:
                self._record(claim, answers)
                answers.clear()
                recorded_at = time.monotonic()

        threads = self.publisher.destination.connections
        for event, answer in in_threads(lambda one: self._send(claim, one), claim.events, threads, record_due):
            answers.append((event, answer))
        self._record(claim, answers)

    def _send(self, claim: Claim, event: OutboxEvent) -> Answer:
        if event.attempts > MOST_ATTEMPTS:
            return NotTaken("publishers ended with it before any of them had an answer", refused=True)
        if not self.goes_on() or claim.seconds_left() <= self.publisher.destination.timeout_seconds:
            return _NotSent()
        reach(Failpoint.DELIVERING)
        answer = self.receiver.deliver(event)
        self._notice(answer)
        reach(Failpoint.DELIVERED)
        return answer

    def _notice(self, answer: NotTaken | None) -> None:
        """Told by each sending thread itself, so that none sends on while the others have seen the outage.

        One answer about an event shows that the receiver is there.
        """
        with self.counting:
            if answer is None or answer.refused:
                self.failed_in_a_row = 0
                return
            self.failed_in_a_row += 1
            if self.failed_in_a_row >= OUTAGE:
                self.result.outage = answer.reason

    def _record(self, claim: Claim, answers: Sequence[tuple[OutboxEvent, Answer]]) -> None:
        taken = [event for event, answer in answers if answer is None]
        waits, given_up = self._judged(answers)
        if taken:
            with transaction(self.engine) as connection:
                self.result.published += mark_published(connection, claim, taken)
                reach(Failpoint.MARKING)
            reach(Failpoint.MARKED)
        if waits:
            with transaction(self.engine) as connection:
                give_back(connection, claim, waits)
            self.result.postponed += sum(wait.sent for wait in waits)
        if given_up:
            with transaction(self.engine) as connection:
                parked = park(connection, claim, given_up)
            self.result.parked += [f"{event.name}: {why}" for event, why in given_up if event.id in parked]

    def _judged(
        self, answers: Sequence[tuple[OutboxEvent, Answer]]
    ) -> tuple[list[Wait], list[tuple[OutboxEvent, str]]]:
        waits: list[Wait] = []
        given_up: list[tuple[OutboxEvent, str]] = []
        for event, answer in answers:
            if isinstance(answer, _NotSent):
                waits.append(Wait(event, timedelta(0), sent=False))
            elif answer is not None:
                wait = wait_after(
                    event.attempts,
                    refused=answer.refused,
                    retry_after=answer.retry_after,
                    uniform=self.publisher.uniform(),
                )
                if wait is None:
                    given_up.append((event, f"{answer.reason} (attempt {event.attempts})"))
                else:
                    waits.append(Wait(event, wait, sent=True))
        return waits, given_up
