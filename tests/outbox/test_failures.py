"""Receivers that do not take an event: it is tried again, bounded, and given up with a record, never silently."""

from __future__ import annotations

import json
import time
from datetime import timedelta

import pytest
from starlette.responses import JSONResponse, RedirectResponse, Response

from ops import publishing
from ops.publishing import OUTAGE
from policies.errors import DefinitionError, SchemaMismatch
from policies.publishing import MOST_ATTEMPTS, MOST_REFUSALS
from tests.outbox.conftest import Outbox, new_aggregate
from tests.outbox.receiver import Delivery
from tests.postgres import Database

POISON = '{"poison": true}'


def refuse_poison(delivery: Delivery) -> Response | None:
    """A receiver that is well, but cannot do anything with one kind of event."""
    return JSONResponse({"detail": "cannot read it"}, 422) if delivery.event["data"].get("poison") else None


def test_a_poison_event_is_parked_with_a_record_and_its_aggregate_goes_on(outbox: Outbox) -> None:
    """It holds back its own aggregate until it is given up, and nobody else at any time."""
    poisoned, well = new_aggregate(), new_aggregate()
    outbox.add(poisoned)
    outbox.add(poisoned, payload=POISON)
    outbox.add(poisoned)
    outbox.add(well, 2)
    outbox.receiver.answer = refuse_poison
    found = outbox.publish()
    assert (found.published, found.postponed, found.outage) == (4, MOST_REFUSALS - 1, "")
    (given_up,) = found.parked
    assert "the receiver answered 422 (attempt 8)" in given_up
    tried = [place for place in outbox.receiver.places if place[0] == f"request/{poisoned}"]
    assert [sequence for _, sequence in tried] == [1, *[2] * MOST_REFUSALS, 3]
    (row,) = outbox.rows("select * from outbox where parked_at is not null")
    assert (row.aggregate_seq, row.attempts, row.published_at, row.claim_token) == (2, MOST_REFUSALS, None, None)
    (record,) = outbox.rows("select * from audit_events where stream = 'system' and type = 'outbox.parked'")
    assert json.loads(bytes(record.payload)) == {
        "event": str(row.id),
        "aggregate": f"request:{poisoned}",
        "sequence": 2,
        "type": "effect.done",
        "attempts": MOST_REFUSALS,
        "reason": "the receiver answered 422 (attempt 8)",
    }
    assert record.role == "failsafe_worker"
    assert outbox.open_events() == 0


def test_a_wait_is_by_the_database_clock(outbox: Outbox) -> None:
    """What was not taken is nobody's until its time has come."""
    outbox.add(new_aggregate())
    outbox.receiver.answer = lambda _: Response(status_code=500)
    assert outbox.publish(uniform=lambda: 0.99).postponed == 1
    assert len(outbox.receiver.deliveries) == 1
    (row,) = outbox.rows(
        "select extract(epoch from claim_until - clock_timestamp()) as wait, claim_token, attempts from outbox"
    )
    assert 3 < row.wait < 5
    assert (row.claim_token, row.attempts) == (None, 1)
    outbox.receiver.answer = lambda _: None
    assert outbox.publish().published == 0
    outbox.end_waits()
    assert outbox.publish().published == 1


def test_a_receiver_may_ask_for_patience(outbox: Outbox) -> None:
    """`Retry-After` is the least wait."""
    outbox.add(new_aggregate())
    outbox.receiver.answer = lambda _: Response(status_code=429, headers={"Retry-After": "90"})
    outbox.publish()
    (row,) = outbox.rows("select extract(epoch from claim_until - clock_timestamp()) as wait from outbox")
    assert 85 < row.wait <= 90


@pytest.mark.parametrize(
    "answer",
    [
        Response(status_code=500),
        Response(status_code=401),
        Response(status_code=404),
        RedirectResponse("/hooks", 307),
        Response(status_code=503, headers={"Retry-After": "0"}),
    ],
)
def test_trouble_of_the_receiver_is_no_fault_of_the_event(outbox: Outbox, answer: Response) -> None:
    """It is tried far longer than one that was refused, and a redirect is not followed."""
    outbox.add(new_aggregate())
    outbox.execute("update outbox set attempts = :attempts", attempts=MOST_REFUSALS)
    outbox.receiver.answer = lambda _: answer
    found = outbox.publish(uniform=lambda: 0.99)
    assert (found.postponed, found.parked) == (1, [])
    assert len(outbox.receiver.deliveries) == 1


def test_attempts_are_bounded_even_so(outbox: Outbox) -> None:
    """The last of many attempts gives it up."""
    outbox.add(new_aggregate(), 2)
    outbox.execute("update outbox set attempts = :attempts where aggregate_seq = 1", attempts=MOST_ATTEMPTS - 1)
    outbox.receiver.answer = lambda delivery: Response(status_code=500) if delivery.place[1] == 1 else None
    found = outbox.publish()
    assert (found.published, len(found.parked)) == (1, 1)


def test_an_event_that_kills_its_publishers_is_given_up_unsent(outbox: Outbox) -> None:
    """Attempts are counted when they begin, so those that never ended count as well."""
    outbox.add(new_aggregate())
    outbox.execute("update outbox set attempts = :attempts", attempts=MOST_ATTEMPTS)
    found = outbox.publish()
    assert outbox.receiver.deliveries == []
    assert len(found.parked) == 1


def test_while_the_receiver_is_down_few_attempts_are_used(outbox: Outbox) -> None:
    """A run stops after some failures in a row; what it had taken and not sent is given back as it was."""
    for _ in range(40):
        outbox.add(new_aggregate())
    outbox.receiver.answer = lambda _: Response(status_code=503)
    found = outbox.publish(uniform=lambda: 0.99)
    sent = len(outbox.receiver.deliveries)
    assert OUTAGE <= sent <= OUTAGE + 4
    assert found.outage == "the receiver answered 503"
    assert (found.published, found.postponed) == (0, sent)
    rows = outbox.rows(
        "select attempts, count(*) as events from outbox where claim_token is null group by 1 order by 1"
    )
    assert [tuple(row) for row in rows] == [(0, 40 - sent), (1, sent)]
    outbox.receiver.answer = lambda _: None
    assert outbox.publish().published == 40 - sent


def test_single_failures_among_many_are_no_outage(outbox: Outbox) -> None:
    """One event taken, or refused for itself, shows that the receiver is there."""
    for _ in range(30):
        outbox.add(new_aggregate())
    answers = iter([*([500] * (OUTAGE - 1)), 422] * 100)
    outbox.receiver.answer = lambda _: Response(status_code=next(answers))
    found = outbox.publish(uniform=lambda: 0.99, connections=1)
    assert (found.outage, found.postponed) == ("", 30)


def test_nothing_is_sent_that_its_claim_might_not_outlast(outbox: Outbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow receiver makes a run let go of what it can no longer send in time, without an attempt used."""
    for _ in range(6):
        outbox.add(new_aggregate())
    monkeypatch.setattr(publishing, "CLAIM_LENGTH", timedelta(seconds=1.0))
    left: list[float] = []

    def take_long(delivery: Delivery) -> None:
        statement = "select extract(epoch from claim_until - clock_timestamp()) as left from outbox where id = :id"
        left.append(float(outbox.rows(statement, id=delivery.event["id"])[0].left))
        time.sleep(0.3)

    outbox.receiver.answer = take_long
    found = outbox.publish(timeout_seconds=0.6, connections=1)
    assert found.published == 6, "what was let go is claimed anew"
    assert min(left) > 0.4, "each began with its claim outlasting the timeout"
    assert {row.attempts for row in outbox.rows("select attempts from outbox")} == {1}
    assert len(outbox.receiver.deliveries) == 6


def test_a_run_ends_with_its_time(outbox: Outbox) -> None:
    """The sensor starts the next one; what was taken is given back at once."""
    for _ in range(4):
        outbox.add(new_aggregate())

    def take_long(_: Delivery) -> None:
        time.sleep(0.4)

    outbox.receiver.answer = take_long
    found = publishing.publish_events(publishing.Publisher(outbox.webhook(connections=1), outbox.url, run_seconds=0.3))
    assert found.published == 1
    assert len(outbox.rows("select from outbox where claim_until is null or claim_until <= clock_timestamp()")) == 4


def test_an_unreachable_receiver_and_one_that_hangs(outbox: Outbox) -> None:
    """Neither holds the publisher longer than the timeout, and both leave the event for later."""
    outbox.add(new_aggregate())

    def hang(_: Delivery) -> None:
        time.sleep(1.5)

    outbox.receiver.answer = hang
    started = time.monotonic()
    assert outbox.publish(timeout_seconds=0.4, uniform=lambda: 0.99).postponed == 1
    assert time.monotonic() - started < 1.4
    outbox.end_waits()
    assert outbox.publish(url="http://127.0.0.1:1/hooks", uniform=lambda: 0.99).postponed == 1


def test_an_answer_however_large_is_an_answer(outbox: Outbox) -> None:
    """Its status counts; reading stops at the cap."""
    outbox.add(new_aggregate())
    outbox.receiver.answer = lambda _: Response("x" * 5_000_000)
    assert outbox.publish(max_response_bytes=100).published == 1


def test_a_publisher_stops_where_it_does_not_know_the_store(
    outbox: Outbox, empty_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And where its variables are missing it has not claimed anything."""
    outbox.add(new_aggregate())
    with pytest.raises(SchemaMismatch):
        publishing.publish_events(publishing.Publisher(outbox.webhook(), empty_database.url()))
    monkeypatch.delenv("HOOK_SECRET")
    with pytest.raises(DefinitionError, match="set HOOK_SECRET in the environment"):
        outbox.publish()
    assert outbox.rows("select attempts, claim_token from outbox") == [(0, None)]
