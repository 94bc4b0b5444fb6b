"""Limits and breaker of a provider: one row in Postgres for all processes."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa

from policies.effects import EffectState
from policies.outcomes import Semantics
from resources.store.catalogue import register_providers
from resources.store.engine import Duty, engine_for, transaction
from tests.store.released import ReleasedRequest, Worker

PROVIDER = "Payments"


@pytest.fixture(autouse=True)
def fresh_provider(worker: Worker) -> None:
    """No limit, a closed breaker, nothing in flight."""
    worker.superuser.run("delete from providers")
    worker.superuser.run("update effects set state = 'unknown' where state = 'in_flight'")
    declare(worker, Semantics())


def declare(worker: Worker, semantics: Semantics) -> None:
    """Register the provider's limits, as a pass does."""
    with transaction(engine_for(Duty.WORKER, worker.url)) as connection:
        register_providers(connection, {PROVIDER: semantics})


def fail(worker: Worker, times: int) -> None:
    """So many calls of unknown outcome in a row."""
    for _ in range(times):
        request = worker.released()
        (started,) = worker.start(request)
        assert started.refusal is None
        worker.record(request, started, EffectState.UNKNOWN)


def provider(worker: Worker) -> sa.Row[tuple[object, ...]]:
    """The provider's row."""
    return worker.superuser.row("select * from providers where name = :name", name=PROVIDER)


def test_five_transport_failures_in_a_row_open_the_breaker(worker: Worker) -> None:
    """An open breaker starts nothing and says how long that takes; four failures leave it closed."""
    fail(worker, 4)
    assert provider(worker).open_until is None
    fail(worker, 1)
    (answer,) = worker.start(worker.released())
    assert answer.refusal == "breaker_open"
    assert 5 < answer.wait_seconds <= 10


def test_a_business_refusal_is_an_answer_and_never_trips_the_breaker(worker: Worker) -> None:
    """Refusals between failures start the count anew: a provider that answers works."""
    for _ in range(4):
        fail(worker, 4)
        request = worker.released()
        (started,) = worker.start(request)
        worker.record(request, started, EffectState.REFUSED)
    assert provider(worker).open_until is None


def test_one_probe_passes_cluster_wide_and_its_success_closes_the_breaker(worker: Worker) -> None:
    """Once the time is over, of many workers at once exactly one may call; when it is answered, all may."""
    fail(worker, 5)
    worker.superuser.run("update providers set open_until = clock_timestamp() - interval '1 ms'")
    requests = [worker.released() for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        answers = [one for (one,) in pool.map(worker.start, requests)]
    passed = [answer for answer in answers if answer.refusal is None]
    assert len(passed) == 1
    assert {answer.refusal for answer in answers if answer.refusal} == {"breaker_open"}
    probe = next(one for one in requests if one.id == passed[0].request_id)
    worker.record(probe, passed[0], EffectState.DONE)
    (answer,) = worker.start(worker.released())
    assert answer.refusal is None


def test_a_probe_that_fails_opens_the_breaker_for_longer(worker: Worker) -> None:
    """Ten seconds, then twenty, and so on up to five minutes."""
    fail(worker, 5)
    worker.superuser.run("update providers set open_until = clock_timestamp() - interval '1 ms'")
    fail(worker, 1)
    (answer,) = worker.start(worker.released())
    assert answer.refusal == "breaker_open"
    assert 15 < answer.wait_seconds <= 20


def test_no_more_calls_are_in_flight_than_the_provider_takes(worker: Worker) -> None:
    """The limit counts the effects in flight of all workers; one that is settled makes room."""
    declare(worker, Semantics(max_in_flight=2))
    requests = [worker.released() for _ in range(5)]
    with ThreadPoolExecutor(5) as pool:
        answers = [one for (one,) in pool.map(worker.start, requests)]
    started = [answer for answer in answers if answer.refusal is None]
    assert len(started) == 2
    assert {answer.refusal for answer in answers if answer.refusal} == {"provider_busy"}
    held = next(one for one in requests if one.id == started[0].request_id)
    worker.record(held, started[0], EffectState.DONE)
    (answer,) = worker.start(worker.released())
    assert answer.refusal is None


def test_no_more_calls_start_in_a_second_than_the_provider_takes(worker: Worker) -> None:
    """What is over the rate waits for the next permit."""
    declare(worker, Semantics(per_second=1))
    answers: list[str | None] = []
    for _ in range(3):
        (answer,) = worker.start(worker.released())
        answers.append(answer.refusal)
    assert answers == [None, "provider_busy", "provider_busy"]
    worker.superuser.run("update providers set refilled_at = refilled_at - interval '2 s'")
    (answer,) = worker.start(worker.released())
    assert answer.refusal is None


def test_repeated_calls_use_up_a_credit_that_first_calls_earn(worker: Worker) -> None:
    """Without credit a repetition waits while first calls pass."""
    request = worker.released()
    (started,) = worker.start(request)
    worker.record(request, started, EffectState.INTENDED)
    worker.superuser.run("update providers set retry_credit = 0, credited_at = clock_timestamp()")
    (again,) = worker.start(request)
    assert again.refusal == "retry_budget"
    first: list[ReleasedRequest] = [worker.released() for _ in range(11)]
    for one in first:
        (answer,) = worker.start(one)
        assert answer.refusal is None
    (again,) = worker.start(request)
    assert again.refusal is None


def test_repeated_calls_earn_their_credit_by_time_and_by_answers(worker: Worker) -> None:
    """Without any new work what waits goes out: one a second at first, and two more for each one that is answered."""
    requests = [worker.released() for _ in range(6)]
    for one in requests:
        (started,) = worker.start(one)
        worker.record(one, started, EffectState.INTENDED)
    worker.superuser.run("update providers set retry_credit = 0, credited_at = clock_timestamp() - interval '1.5 s'")
    answers = {one.id: worker.start(one)[0] for one in requests}
    [(first, started)] = [(one, answers[one.id]) for one in requests if answers[one.id].refusal is None]
    assert Counter(answer.refusal for answer in answers.values()) == {None: 1, "retry_budget": 5}
    worker.record(first, started, EffectState.DONE)
    again = [worker.refusal(one) for one in requests if one is not first]
    assert again.count(None) in (2, 3)  # a second may have passed since


@pytest.mark.parametrize("column", ["credited_at", "refilled_at"])
def test_a_clock_that_is_set_back_takes_nothing_away(worker: Worker, column: str) -> None:
    """What was earned stays, and the next second counts again."""
    declare(worker, Semantics(per_second=5))
    request = worker.released()
    (started,) = worker.start(request)
    worker.record(request, started, EffectState.INTENDED)
    worker.superuser.run(
        f"update providers set retry_credit = 3, tokens = 3, {column} = clock_timestamp() + interval '1 year'"
    )
    (again,) = worker.start(request)
    assert again.refusal is None
    assert worker.superuser.value(f"select {column} <= clock_timestamp() from providers") is True


def test_credit_that_is_not_used_does_not_grow_without_end(worker: Worker) -> None:
    """A day without repeated calls is no reason to bury the provider when it falters."""
    request = worker.released()
    (started,) = worker.start(request)
    worker.superuser.run("update providers set retry_credit = 1, credited_at = clock_timestamp() - interval '1 day'")
    worker.record(request, started, EffectState.INTENDED)
    worker.start(request)
    assert worker.superuser.value("select retry_credit from providers") == pytest.approx(19, abs=0.2)
