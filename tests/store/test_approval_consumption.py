"""An approval is recounted when the first effect consumes it, once, and from then on releases that proposal alone."""

from __future__ import annotations

import threading

import pytest
import sqlalchemy as sa

from policies.effects import EffectState
from resources.store.principals import disable_principal, set_roles
from tests.store.released import SAGA, ReleasedRequest, Worker
from tests.store.requests import Person


@pytest.fixture
def lead(worker: Worker) -> Person:
    """Somebody who may vote."""
    return worker.person("lead")


@pytest.fixture
def other(worker: Worker) -> Person:
    """Somebody else who may vote."""
    return worker.person("lead")


def expire(worker: Worker, approved: ReleasedRequest) -> None:
    """Let the approval's time be over."""
    times = "opened_at = opened_at - interval '2 h', expires_at = clock_timestamp()"
    worker.tamper("approval_requests", times, approved)


def test_an_approval_that_expired_releases_nothing(worker: Worker, lead: Person) -> None:
    """Voted in time, consumed a moment too late: not started, not consumed."""
    approved = worker.released(decision="review", voters=[lead])
    expire(worker, approved)
    assert worker.refusal(approved) == "approval_expired"
    assert worker.untouched(approved)


def test_the_clock_is_read_after_waiting_for_the_lock(worker: Worker, lead: Person) -> None:
    """A start that began before the expiry and had to wait past it for a lock is too late."""
    approved = worker.released(decision="review", voters=[lead], expires_in=1.5)
    refusals: list[str | None] = []
    waiting = threading.Thread(target=lambda: refusals.append(worker.refusal(approved)))
    with worker.superuser.engine.begin() as connection:
        connection.execute(sa.text("select from requests where id = :id for update"), {"id": approved.id})
        waiting.start()
        connection.execute(sa.text("select pg_sleep(1.8)"))
    waiting.join()
    assert refusals == ["approval_expired"]


def test_an_approval_is_consumed_once_and_later_starts_need_no_fresh_expiry(worker: Worker, lead: Person) -> None:
    """The first effect consumes it; the same proposal's next action and a resend go on after the expiry."""
    approved = worker.released(decision="review", voters=[lead], actions=SAGA)
    (first,) = worker.start(approved)
    consumed = worker.consumed_at(approved)
    expire(worker, approved)
    worker.record(approved, first, EffectState.INTENDED)
    (again,) = worker.start(approved)
    assert again.refusal is None
    worker.record(approved, again, EffectState.DONE)
    assert worker.refusal(approved, approved.start(2)) is None
    assert worker.consumed_at(approved) == consumed


def test_two_workers_at_once_consume_it_once(worker: Worker, lead: Person) -> None:
    """Of two starts of one action at the same moment one sends, the other finds it in flight."""
    approved = worker.released(decision="review", voters=[lead])
    answers: list[str | None] = []
    both = threading.Barrier(2)

    def start() -> None:
        both.wait()
        answers.append(worker.refusal(approved))

    threads = [threading.Thread(target=start) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers, key=str) == [None, "effect_in_flight"]
    assert worker.effect(approved).attempts == 1


def test_a_voter_disabled_after_voting_counts_no_more(worker: Worker, lead: Person, other: Person) -> None:
    """Votes are recounted by who may vote now."""
    approved = worker.released(decision="review", voters=[lead, other], quorum=2)
    assert disable_principal(worker.url, other.name)
    assert worker.refusal(approved) == "too_few_votes"


def test_a_voter_without_the_role_counts_no_more(worker: Worker, lead: Person) -> None:
    """Taking the role away after the vote takes the vote's weight away."""
    approved = worker.released(decision="review", voters=[lead])
    assert set_roles(worker.url, lead.name, ["clerk"])
    assert worker.refusal(approved) == "too_few_votes"


@pytest.mark.parametrize("hash_name", ["proposal_hash", "review_hash"])
def test_a_vote_on_something_else_does_not_count(worker: Worker, lead: Person, hash_name: str) -> None:
    """However it got there, a vote bound to another proposal or document is no vote on this one."""
    approved = worker.released(decision="review", voters=[lead])
    worker.tamper("approval_votes", f"{hash_name} = sha256('')", approved)
    assert worker.refusal(approved) == "too_few_votes"


def test_a_denial_wins(worker: Worker, lead: Person, other: Person) -> None:
    """A denial among enough approvals, however it got there, stops the start."""
    approved = worker.released(decision="review", voters=[lead])
    worker.superuser.run(
        "insert into approval_votes (approval_id, voter, vote, proposal_hash, review_hash, cast_at)"
        " select approval_id, :other, 'deny', proposal_hash, review_hash, clock_timestamp()"
        " from approval_votes where approval_id = :id",
        other=other.id,
        id=approved.approval_id,
    )
    assert worker.refusal(approved) == "denied"


def test_a_worker_cannot_release_by_moving_the_request_itself(worker: Worker, lead: Person) -> None:
    """The transition alone is no authority: without a resolution nothing starts."""
    waiting = worker.released(decision="review", voters=[])
    worker.superuser.move(waiting.id, "approved", "executing")
    assert worker.refusal(waiting) == "not_released"


def test_a_round_later_than_the_approval_is_not_released_by_it(worker: Worker, lead: Person) -> None:
    """What was approved in one round does not carry over into the next."""
    approved = worker.released(decision="review", voters=[lead])
    worker.change(approved, "round = 2")
    worker.superuser.run(
        "insert into assessments select request_id, revision, 2, tier, decision, mode, reasons, demand, policy_version,"
        " policy_hash from assessments where request_id = :id",
        id=approved.id,
    )
    assert worker.refusal(approved) == "no_approval"
