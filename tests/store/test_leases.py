"""Leases: who holds work, for how long, and that whoever lost it changes nothing any more."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from policies.states import Event, State
from resources.store.claim import FIRST, Lease, claim, release, renew
from resources.store.effects import sweep_leases
from resources.store.engine import Duty, engine_for, transaction
from resources.store.moves import Move, Postponement, advance, postpone
from tests.store.released import Worker

LONG = timedelta(seconds=30)


class Queue:
    """Requests that wait in a batch of their own."""

    def __init__(self, worker: Worker, requests: int) -> None:
        self.worker = worker
        self.engine = engine_for(Duty.WORKER, worker.url)
        self.batch = uuid.uuid4().hex
        clerk = worker.person("clerk")
        self.ids = sorted(worker.superuser.received(clerk, f"{clerk.name} {number}") for number in range(requests))
        self.change("batch_key = :batch", batch=self.batch)

    def change(self, assignments: str, **values: object) -> None:
        """Change columns of all of them as nobody else may."""
        worker = self.worker.superuser
        worker.run(f"update requests set {assignments} where id = any (:ids)", ids=self.ids, **values)

    def row(self, request_id: uuid.UUID | None = None) -> sa.Row[Any]:
        """One of them, by default the first, as it is stored."""
        return self.worker.superuser.row("select * from requests where id = :id", id=request_id or self.ids[0])

    def claim(self, **changed: Any) -> Lease:
        """Claim as a step does."""
        arguments: dict[str, Any] = {
            "workflow": "refunds",
            "batch": self.batch,
            "state": State.RECEIVED,
            "opened_at": self.now(),
            "after": FIRST,
            "limit": 500,
            "length": LONG,
        }
        return claim(self.engine, **(arguments | changed))

    def now(self) -> datetime:
        """The database's clock."""
        now = self.worker.superuser.value("select clock_timestamp()")
        assert isinstance(now, datetime)
        return now

    def end_leases(self) -> None:
        """Let every lease run out."""
        self.worker.superuser.run(
            "update requests set lease_until = clock_timestamp() - interval '1 ms'"
            " where batch_key = :batch and lease_token is not null",
            batch=self.batch,
        )

    def sweep(self, limit: int = 500) -> int:
        """Take back what dead workers hold."""
        with transaction(self.engine) as connection:
            return sweep_leases(connection, "refunds", self.batch, limit)


@pytest.fixture
def queue(worker: Worker) -> Queue:
    """Three requests in a batch of their own."""
    return Queue(worker, 3)


def ids(lease: Lease) -> list[uuid.UUID]:
    """Which requests a lease holds, in its order."""
    return [request.id for request in lease.requests]


def test_what_is_claimed_is_nobody_elses(queue: Queue) -> None:
    """A second worker finds the rest, then nothing; each claim goes in the order of the ids."""
    assert ids(queue.claim(limit=2)) == queue.ids[:2]
    assert ids(queue.claim()) == queue.ids[2:]
    assert ids(queue.claim()) == []


def test_a_claim_does_not_wait_for_another_one(queue: Queue) -> None:
    """Rows that somebody is about to claim are skipped."""
    with queue.worker.superuser.engine.begin() as connection:
        connection.execute(sa.text("select from requests where id = :id for update"), {"id": queue.ids[0]})
        assert ids(queue.claim()) == queue.ids[1:]


def test_two_workers_at_once_share_the_work_out(worker: Worker) -> None:
    """However they interleave, every request is held by one of them."""
    queue = Queue(worker, 40)
    held: list[list[uuid.UUID]] = []
    both = threading.Barrier(2)

    def take() -> None:
        both.wait()
        mine: list[uuid.UUID] = []
        while lease := ids(queue.claim(limit=3)):
            mine += lease
        held.append(mine)

    threads = [threading.Thread(target=take) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(held[0] + held[1]) == queue.ids


def test_a_pass_takes_what_was_due_when_it_opened(queue: Queue) -> None:
    """What became due since waits for the next pass, so that no step starves another."""
    opened_at = queue.now()
    queue.change("next_eligible_at = clock_timestamp()")
    assert ids(queue.claim(opened_at=opened_at)) == []
    assert ids(queue.claim()) == queue.ids


def test_the_lease_ends_by_the_clock_of_the_database_and_never_later_here(queue: Queue) -> None:
    """The worker's own clock counts from before it asked, so it never believes in a lease that is over."""
    before, asked_at = queue.now(), time.monotonic()
    lease = queue.claim(length=timedelta(seconds=10))
    until = queue.row().lease_until
    assert before + timedelta(seconds=10) <= until <= queue.now() + timedelta(seconds=10)
    assert asked_at + 10 <= lease.sure_until
    left_there = (until - queue.now()).total_seconds()
    assert lease.seconds_left() <= left_there


def test_renewing_keeps_what_is_still_held(queue: Queue) -> None:
    """A renewal moves the end for what is ours and tells what is not."""
    lease = queue.claim(length=timedelta(seconds=2))
    lost, *kept = queue.ids
    queue.worker.superuser.run("update requests set lease_token = gen_random_uuid() where id = :id", id=lost)
    stolen_until = queue.row(lost).lease_until
    lease.length = LONG
    assert renew(queue.engine, lease) == set(kept)
    assert lease.held == set(kept)
    assert lease.seconds_left() > 20
    assert queue.row(kept[0]).lease_until > queue.now() + timedelta(seconds=20)
    assert queue.row(lost).lease_until == stolen_until


def test_a_renewal_never_brings_back_what_was_lost(queue: Queue) -> None:
    """A request once lost stays lost, even if the token were found on it again."""
    lease = queue.claim()
    queue.change("lease_token = null, lease_until = null")
    assert renew(queue.engine, lease) == set()
    queue.change("lease_token = :token, lease_until = clock_timestamp()", token=lease.token)
    renew(queue.engine, lease)
    assert lease.held == set()


def test_a_lease_is_given_back(queue: Queue) -> None:
    """What is released can be claimed at once; releasing under another token does nothing."""
    lease = queue.claim()
    stranger = Lease(uuid.uuid4(), LONG, 0.0)
    with transaction(queue.engine) as connection:
        release(connection, stranger, queue.ids)
    assert ids(queue.claim()) == []
    with transaction(queue.engine) as connection:
        release(connection, lease, queue.ids)
    assert ids(queue.claim()) == queue.ids


def test_a_sweep_frees_what_ran_out_and_counts_the_crash(queue: Queue) -> None:
    """The request is due again at once, its crash counted apart from its attempts, and the ledger says so."""
    queue.claim()
    assert queue.sweep() == 0, "a lease that runs is left alone"
    queue.end_leases()
    assert queue.sweep() == 3
    swept = queue.row()
    assert (swept.lease_token, swept.lease_until) == (None, None)
    assert (swept.crash_count, swept.lone_crash_count, swept.attempts) == (1, 0, 0)
    events = queue.worker.superuser.value(
        "select count(*) from audit_events where type = 'request.lease_expired' and stream = :stream",
        stream=f"request:{swept.id}",
    )
    assert events == 1
    assert queue.sweep() == 0


def test_a_sweep_leaves_a_lease_that_was_renewed_while_it_waited(queue: Queue) -> None:
    """Whether a lease ran out is decided on the row as it is once nobody else changes it."""
    lease = queue.claim()
    queue.end_leases()
    swept: list[int] = []
    with queue.worker.superuser.engine.begin() as connection:
        connection.execute(
            sa.text(
                "update requests set lease_until = clock_timestamp() + interval '1 min' where lease_token = :token"
            ),
            {"token": lease.token},
        )
        sweeping = threading.Thread(target=lambda: swept.append(queue.sweep()))
        sweeping.start()
        sweeping.join(5)
    sweeping.join()
    assert swept == [0]
    assert queue.row().crash_count == 0


def test_a_large_backlog_is_swept_page_by_page(worker: Worker) -> None:
    """Every page makes progress, and rows that somebody holds locked hide none behind them."""
    queue = Queue(worker, 7)
    queue.claim()
    queue.end_leases()
    with worker.superuser.engine.begin() as connection:
        connection.execute(sa.text("select from requests where id = :id for update"), {"id": queue.ids[0]})
        assert [queue.sweep(3), queue.sweep(3), queue.sweep(3)] == [3, 3, 0]
    assert queue.sweep(3) == 1


def test_a_suspect_is_claimed_alone_and_only_lone_crashes_count_against_it(queue: Queue) -> None:
    """After a crash in company each goes by itself; a crash by itself is its own."""
    queue.claim()
    queue.end_leases()
    queue.sweep()
    assert ids(queue.claim()) == [], "not with healthy requests"
    lease = queue.claim(suspect=True)
    assert ids(lease) == queue.ids[:1]
    queue.end_leases()
    assert queue.sweep() == 1
    assert (queue.row().crash_count, queue.row().lone_crash_count) == (2, 1)
    assert queue.row(queue.ids[1]).lone_crash_count == 0


@pytest.fixture
def late(queue: Queue) -> Iterator[Lease]:
    """A lease whose worker stalled: it ran out, was swept and the requests are held by another worker."""
    lease = queue.claim()
    queue.end_leases()
    queue.sweep()
    queue.claim(suspect=True)
    before = queue.row()
    yield lease
    assert queue.row() == before, "the late worker changed something"


def test_a_late_worker_advances_nothing(queue: Queue, late: Lease) -> None:
    """Its transition is not made, neither while another holds the request nor by no token at all."""
    move = Move(queue.ids[0], State.RECEIVED, Event.REVIEW_NEEDED, "late")
    with transaction(queue.engine) as connection:
        assert advance(connection, [move], late.token) == set()
        assert advance(connection, [move]) == set()


def test_a_late_worker_postpones_renews_and_releases_nothing(queue: Queue, late: Lease) -> None:
    """Its waits, renewals and releases touch no request of the worker that holds it now."""
    wait = Postponement(queue.ids[0], timedelta(hours=1), "late")
    with transaction(queue.engine) as connection:
        assert postpone(connection, [wait], late.token) == set()
    assert renew(queue.engine, late) == set()
    with transaction(queue.engine) as connection:
        release(connection, late, queue.ids)


def test_a_worker_whose_request_is_nobodys_changes_nothing(queue: Queue) -> None:
    """Swept and not yet claimed again, the request still does not obey the old token."""
    lease = queue.claim()
    queue.end_leases()
    queue.sweep()
    with transaction(queue.engine) as connection:
        assert (
            advance(connection, [Move(queue.ids[0], State.RECEIVED, Event.REVIEW_NEEDED, "late")], lease.token) == set()
        )
    assert queue.row().state == "received"


def test_a_decision_on_a_state_that_is_past_changes_nothing(queue: Queue) -> None:
    """A move decided on a state that somebody changed meanwhile is not made, lease or not."""
    lease = queue.claim()
    queue.worker.superuser.move(queue.ids[0], "gave_up", "dead_lettered")
    with transaction(queue.engine) as connection:
        moved = advance(
            connection, [Move(one, State.RECEIVED, Event.REVIEW_NEEDED, "?") for one in queue.ids], lease.token
        )
    assert moved == set(queue.ids[1:])
    assert queue.row().state == "dead_lettered"
