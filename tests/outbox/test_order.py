"""Events of one aggregate arrive in their order, all of them, whoever writes, publishes and dies at the same time."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import defaultdict
from datetime import timedelta
from pathlib import Path
from typing import Self

import pytest
import sqlalchemy as sa
from starlette.responses import Response

from resources.outbox.events import Wait, claim_events, give_back, mark_published, park
from resources.store.engine import Duty, engine_for, transaction
from tests.ops.passes import Shop, refund
from tests.outbox.conftest import Outbox, new_aggregate, write_event
from tests.outbox.receiver import Delivery, Inbox, Receiver
from tests.postgres import Database

ROOT = Path(__file__).resolve().parent.parent.parent
MINUTE = timedelta(minutes=1)


def first_deliveries(receiver: Receiver) -> dict[str, list[int]]:
    """Sequences of each subject in the order they first came."""
    found: dict[str, list[int]] = defaultdict(list)
    for subject, sequence in receiver.places:
        if sequence not in found[subject]:
            found[subject].append(sequence)
    return found


def stored(outbox: Outbox) -> dict[str, list[int]]:
    """Sequences of each subject that were committed."""
    found: dict[str, list[int]] = defaultdict(list)
    for row in outbox.rows("select aggregateid, aggregate_seq from outbox order by aggregate_seq"):
        found[f"request/{row.aggregateid}"].append(row.aggregate_seq)
    return found


class Writers:
    """Six transactions at a time, one in ten of them rolled back, a third of them slow to commit."""

    def __init__(self, outbox: Outbox, seed: int) -> None:
        self._outbox = outbox
        self._aggregates = [new_aggregate() for _ in range(12)]
        self._threads = [threading.Thread(target=self._write, args=(seed * 10 + number,)) for number in range(6)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        for thread in self._threads:
            thread.join()

    @property
    def busy(self) -> bool:
        return any(thread.is_alive() for thread in self._threads)

    def _write(self, seed: int) -> None:
        chance = random.Random(seed)
        with self._outbox.superuser.connect() as connection:
            for _ in range(40):
                work = connection.begin()
                write_event(connection, chance.choice(self._aggregates))
                if chance.random() < 0.3:
                    time.sleep(chance.random() * 0.02)
                work.rollback() if chance.random() < 0.1 else work.commit()


@pytest.mark.parametrize("seed", [1, 2])
def test_none_is_missed_and_none_comes_out_of_order(outbox: Outbox, seed: int) -> None:
    """Several writers and publishers at once, a receiver that takes an event and fails, and an idle transaction."""
    chance = random.Random(seed)

    def moody(_: Delivery) -> Response | None:
        return Response(status_code=503) if chance.random() < 0.1 else None

    outbox.receiver.answer = moody
    idle = outbox.superuser.connect()
    write_event(idle, "idle")  # begins a transaction that stays open and has a number already
    with Writers(outbox, seed) as writers:

        def publish() -> None:
            while writers.busy or outbox.open_events():
                outbox.publish()

        publishers = [threading.Thread(target=publish) for _ in range(3)]
        for thread in publishers:
            thread.start()
    for thread in publishers:
        thread.join()
    committed = stored(outbox)
    assert sum(map(len, committed.values())) > 150
    assert first_deliveries(outbox.receiver) == committed, "0 missed, 0 out of order, 0 of what was rolled back"
    assert outbox.receiver.forged == 0
    idle.commit()
    idle.close()
    outbox.publish()
    assert first_deliveries(outbox.receiver)["request/idle"] == [1], "what committed late is published late, not never"
    inbox = Inbox()
    for delivery in outbox.receiver.deliveries:
        inbox.take(delivery.event)
    assert len(inbox.told) == sum(map(len, committed.values())) + 1


def test_a_second_event_waits_for_the_first(outbox: Outbox) -> None:
    """While somebody holds the first, or it has to wait, the others of its aggregate are nobody's; other ones go on."""
    first, other = new_aggregate(), new_aggregate()
    outbox.add(first, 2)
    outbox.add(other)
    engine = engine_for(Duty.WORKER, outbox.url)
    held = claim_events(engine, limit=10, length=MINUTE)
    assert [(event.aggregateid, event.sequence) for event in held.events] == [(first, 1), (other, 1)]
    assert claim_events(engine, limit=10, length=MINUTE).events == []
    with transaction(engine) as connection:
        give_back(connection, held, [Wait(held.events[0], MINUTE, sent=True)])
        assert mark_published(connection, held, held.events[1:]) == 1
    assert claim_events(engine, limit=10, length=MINUTE).events == []
    outbox.end_waits()
    again = claim_events(engine, limit=10, length=MINUTE)
    assert [(event.sequence, event.attempts) for event in again.events] == [(1, 2)]
    with transaction(engine) as connection:
        mark_published(connection, again, again.events)
    assert [event.sequence for event in claim_events(engine, limit=10, length=MINUTE).events] == [2]


def test_a_claim_that_ran_out_changes_nothing(outbox: Outbox) -> None:
    """Whoever took the event over decides about it: a late mark, wait or skip of the first owner is void."""
    outbox.add(new_aggregate())
    engine = engine_for(Duty.WORKER, outbox.url)
    late = claim_events(engine, limit=10, length=MINUTE)
    outbox.end_waits()
    owner = claim_events(engine, limit=10, length=MINUTE)
    before = outbox.rows("select * from outbox")
    with transaction(engine) as connection:
        assert mark_published(connection, late, late.events) == 0
        give_back(connection, late, [Wait(late.events[0], timedelta(0), sent=True)])
        assert park(connection, late, [(late.events[0], "too late")]) == []
    assert outbox.rows("select * from outbox") == before
    with transaction(engine) as connection:
        assert mark_published(connection, owner, owner.events) == 1


def test_an_idle_transaction_that_holds_an_event_blocks_nobody(outbox: Outbox) -> None:
    """A claim passes over rows that somebody has locked, and does not wait."""
    aggregates = [new_aggregate() for _ in range(3)]
    for aggregate in aggregates:
        outbox.add(aggregate)
    with outbox.superuser.connect() as idle:
        idle.execute(sa.text("select from outbox where aggregateid = :id for update"), {"id": aggregates[0]})
        started = time.monotonic()
        assert outbox.publish().published == 2
        assert time.monotonic() - started < 5
    assert outbox.publish().published == 1


def test_no_transaction_is_open_while_an_event_is_sent(outbox: Outbox) -> None:
    """A receiver that takes its time holds neither locks nor snapshots of the store."""
    seen: list[tuple[int, int]] = []

    def look(_: Delivery) -> None:
        statement = (
            "select count(*) as sessions, count(xact_start) as transactions from pg_stat_activity"
            " where datname = current_database() and application_name = 'failsafe_worker'"
        )
        seen.append(tuple(outbox.rows(statement)[0]))

    outbox.receiver.answer = look
    outbox.add(new_aggregate())
    assert outbox.publish().published == 1
    assert seen == [(1, 0)]


PUBLISH = """
import sys
import dagster as dg
from ops.publishing import Publisher, publish_events
from resources.outbox.webhook import Webhook
webhook = Webhook(url=sys.argv[1], secret=dg.EnvVar("HOOK_SECRET"), hosts=["127.0.0.1"], connections=1)
print(publish_events(Publisher(webhook, sys.argv[2])).published)
"""


def test_a_publisher_that_dies_after_the_send_repeats_it_and_the_consumer_drops_it(outbox: Outbox) -> None:
    """Publish, then mark: a real process is killed between the two; its event comes again under the same id."""
    aggregate, inbox = new_aggregate(), Inbox()
    outbox.add(aggregate, 3)
    publisher = subprocess.Popen([sys.executable, "-c", PUBLISH, outbox.receiver.url, outbox.url], cwd=ROOT)

    def take_and_kill(delivery: Delivery) -> None:
        inbox.take(delivery.event)
        if len(outbox.receiver.deliveries) == 2:
            os.kill(publisher.pid, signal.SIGKILL)
            publisher.wait()

    outbox.receiver.answer = take_and_kill
    assert publisher.wait(timeout=60) == -signal.SIGKILL
    assert outbox.publish().published == 0, "the dead publisher's claim still stands, and nothing overtakes it"
    outbox.end_waits()
    repeated: list[bool] = []

    def take(delivery: Delivery) -> None:
        repeated.append(not inbox.take(delivery.event))

    outbox.receiver.answer = take
    assert outbox.publish().published == 2
    subject = f"request/{aggregate}"
    assert outbox.receiver.places == [(subject, 1), (subject, 2), (subject, 2), (subject, 3)]
    assert repeated == [True, False]
    assert inbox.told == [(subject, 1), (subject, 2), (subject, 3)]
    first, second = outbox.receiver.deliveries[1:3]
    assert first.body == second.body
    assert first.headers["webhook-id"] == second.headers["webhook-id"] == first.event["id"]
    attempts = outbox.rows("select attempts from outbox order by aggregate_seq")
    assert [row.attempts for row in attempts] == [1, 2, 1], "a crash uses up an attempt, so crashes are bounded too"


def test_what_requests_come_to_is_published(database: Database, tmp_path: Path, outbox: Outbox) -> None:
    """From the queue to the consumer: the events of real effects, in their order, with what a consumer needs."""
    shop = Shop(database, tmp_path)
    shop.queue({"one": refund(say="saga")})
    shop.run()
    outbox.publish()
    request_id = shop.request("one").id
    events = [delivery.event for delivery in outbox.receiver.deliveries]
    assert {event["subject"] for event in events} == {f"request/{request_id}"}
    assert [event["data"]["action"] for event in events] == ["stock.reserve", "order.refund", "customer.tell"]
    assert {event["type"] for event in events} == {"effect.done"}
    numbers = shop.rows("select seq from audit_events where type = 'effect.done' order by seq")
    assert [event["sequence"] for event in events] == [f"{row.seq:019d}" for row in numbers]
    assert all(event["data"]["key"].startswith(f"refunds:{request_id}:") for event in events)
    assert outbox.open_events() == 0
    assert len(outbox.rows("select from outbox where published_at is not null")) == 3, "published rows stay"
