"""Outcomes: recorded once, together with what follows, by whoever holds the request; others only bear witness."""

from __future__ import annotations

import json
import uuid

import pytest

from policies.effects import EffectState
from resources.store.effects import Outcome, Started, mark_rechecked, report_late, sweep_leases
from resources.store.engine import Duty, engine_for, transaction
from tests.store.released import ReleasedRequest, Worker
from tests.store.requests import DAY


@pytest.fixture
def request_(worker: Worker) -> ReleasedRequest:
    """A released request."""
    return worker.released()


@pytest.fixture
def started(worker: Worker, request_: ReleasedRequest) -> Started:
    """Its effect, in flight."""
    (started,) = worker.start(request_)
    return started


def outbox(worker: Worker, request: ReleasedRequest) -> object:
    """How many outbox events a request has."""
    return worker.superuser.value("select count(*) from outbox where aggregateid = :id", id=str(request.id))


@pytest.mark.parametrize("state", [EffectState.DONE, EffectState.REFUSED, EffectState.UNKNOWN, EffectState.INTENDED])
def test_an_outcome_is_written_with_its_ledger_event(
    worker: Worker, request_: ReleasedRequest, started: Started, state: EffectState
) -> None:
    """Effect and audit event stand together; what is final goes out to others as well, in the request's order."""
    assert worker.record(request_, started, state) == {started.key}
    assert worker.effect(request_).state == state
    kind, payload = worker.events(request_)[-1]
    assert kind == f"effect.{state}"
    assert json.loads(payload)["key"] == started.key
    assert outbox(worker, request_) == (1 if state in ("done", "refused") else 0)


def test_an_outcome_is_recorded_once(worker: Worker, request_: ReleasedRequest, started: Started) -> None:
    """A second report on a settled effect, the same or another, changes nothing."""
    worker.record(request_, started, EffectState.DONE)
    events = worker.events(request_)
    for state in (EffectState.DONE, EffectState.REFUSED, EffectState.INTENDED):
        assert worker.record(request_, started, state) == set()
    assert worker.effect(request_).state == "done"
    assert worker.events(request_) == events
    assert outbox(worker, request_) == 1


def test_a_late_worker_records_nothing(worker: Worker, request_: ReleasedRequest, started: Started) -> None:
    """With another token on the request, in flight or unknown, the old one's outcome is not taken."""
    worker.change(request_, "lease_token = gen_random_uuid()")
    assert worker.record(request_, started, EffectState.DONE) == set()
    worker.tamper("effects", "state = 'unknown'", request_)
    assert worker.record(request_, started, EffectState.DONE) == set()
    assert worker.effect(request_).state == "unknown"


def test_a_new_holder_does_not_settle_what_the_old_one_has_in_flight(
    worker: Worker, request_: ReleasedRequest, started: Started
) -> None:
    """Only after the sweep, when the effect is unknown, may another worker say what became of it."""
    other = uuid.uuid4()
    worker.change(request_, "lease_token = :other", other=other)
    assert worker.record(request_, started, EffectState.INTENDED, other) == set()
    assert worker.effect(request_).state == "in_flight"


def test_a_sweep_makes_effects_in_flight_unknown(worker: Worker, request_: ReleasedRequest, started: Started) -> None:
    """A worker that stopped may have sent it: nobody knows, and whoever holds the request next has to find out."""
    worker.change(request_, "lease_until = clock_timestamp() - interval '1 ms'")
    with transaction(engine_for(Duty.WORKER, worker.url)) as connection:
        assert sweep_leases(connection, "refunds", DAY, 500) == 1
    assert worker.effect(request_).state == "unknown"
    kind, payload = worker.events(request_)[-1]
    assert (kind, json.loads(payload)) == ("request.lease_expired", {"unknown_effects": [started.key]})
    other = uuid.uuid4()
    worker.change(request_, "lease_token = :other, lease_until = clock_timestamp() + interval '30 s'", other=other)
    assert worker.record(request_, started, EffectState.DONE, other) == {started.key}


def test_what_a_provider_told_a_late_worker_is_kept(
    worker: Worker, request_: ReleasedRequest, started: Started
) -> None:
    """Its word stands in the ledger, reference and reason included, and changes neither effect nor request."""
    worker.change(request_, "lease_token = gen_random_uuid()")
    before = worker.effect(request_)
    done = Outcome(request_.id, 1, started.key, EffectState.DONE, "pay-1", {"fee": 3})
    declined = Outcome(request_.id, 1, started.key, EffectState.REFUSED, error="declined: no cover")
    with transaction(engine_for(Duty.WORKER, worker.url)) as connection:
        report_late(connection, [done, declined])
    assert worker.effect(request_) == before
    reports = [json.loads(payload) for kind, payload in worker.events(request_) if kind == "effect.late_report"]
    assert reports == [
        {"key": started.key, "said": "done", "reference": "pay-1", "error": None},
        {"key": started.key, "said": "refused", "reference": None, "error": "declined: no cover"},
    ]


def test_a_late_worker_marks_nothing_as_rechecked(worker: Worker, request_: ReleasedRequest) -> None:
    """A recheck by a worker that lost the request does not count for the one that holds it."""
    worker.change(request_, "rechecked_until = null")
    with transaction(engine_for(Duty.WORKER, worker.url)) as connection:
        assert mark_rechecked(connection, uuid.uuid4(), [request_.id], age=0) == set()
    assert worker.refusal(request_) == "not_rechecked"
    with transaction(engine_for(Duty.WORKER, worker.url)) as connection:
        assert mark_rechecked(connection, request_.token, [request_.id], age=0) == {request_.id}
    assert worker.refusal(request_) is None


def test_a_recheck_is_as_old_as_what_was_read(worker: Worker, request_: ReleasedRequest) -> None:
    """It is good for 30 seconds since then, however long judging took."""
    with transaction(engine_for(Duty.WORKER, worker.url)) as connection:
        mark_rechecked(connection, request_.token, [request_.id], age=31)
    assert worker.refusal(request_) == "not_rechecked"
