"""Runs that are started so that a batch shows what is true of it now: its colour, and who has been waiting."""

from __future__ import annotations

import uuid

from policies.run_tags import WHY
from tests.sensors.conftest import Location

BATCH = "2026-01-05"


def parked(location: Location) -> uuid.UUID:
    """A request with an open case."""
    request_id = location.queued(BATCH)
    location.superuser.move(request_id, "gave_up", "dead_lettered")
    location.superuser.run(
        "insert into dead_letters (request_id, step, failure, trace_id) values (:id, 'extract', 'gave up', 'trace')",
        id=request_id,
    )
    return request_id


def discard(location: Location, request_id: uuid.UUID) -> None:
    """An operator is done with it."""
    location.superuser.run(
        "update dead_letters set closed_at = clock_timestamp(), closed_by = :by, resolution = 'not needed'"
        " where request_id = :id",
        by=location.shop.id,
        id=request_id,
    )
    location.end(request_id, "discarded", "failed")


def asked(location: Location, *, opened: str, expires: str) -> uuid.UUID:
    """A request about which people were asked so long ago, for so long from now."""
    found = location.superuser.asked(location.shop, uuid.uuid4().hex)
    location.superuser.run("alter table approval_requests disable trigger user")
    location.superuser.run(
        "update approval_requests set opened_at = clock_timestamp() - cast(:opened as interval),"
        " expires_at = clock_timestamp() + cast(:expires as interval) where id = :id",
        opened=opened,
        expires=expires,
        id=found.approval_id,
    )
    location.superuser.run("alter table approval_requests enable trigger user")
    location.superuser.run("update requests set batch_key = :batch where id = :id", batch=BATCH, id=found.id)
    return found.id


def test_the_last_case_that_is_closed_starts_a_run(location: Location) -> None:
    """The partition is red until a run looks again; one suffices, and none is needed while another case is open."""
    first, last = parked(location), parked(location)
    location.opened(BATCH, ago="1 minute")
    assert location.batches("work_due") == []
    discard(location, first)
    assert location.batches("work_due") == []
    discard(location, last)
    ((request,), _) = location.tick("work_due")
    assert (request.partition_key, request.tags[WHY]) == (BATCH, "cases_closed")
    assert location.batches("approvals_landed") == []
    location.opened(BATCH)
    assert location.batches("work_due") == []


def test_a_case_of_another_batch_does_not_hold_it_back(location: Location) -> None:
    """Each batch has its own colour."""
    one = parked(location)
    other = parked(location)
    location.superuser.run("update requests set batch_key = '2026-01-06' where id = :id", id=other)
    location.opened(BATCH, ago="1 minute")
    discard(location, one)
    assert location.batches("work_due") == [BATCH]


def test_a_question_that_has_used_up_half_of_its_time_starts_a_run(location: Location) -> None:
    """Once: the run says so at the check, and the next question that does so is not news."""
    asked(location, opened="2 hours", expires="1 hour")
    location.opened(BATCH, ago="1 hour")
    ((request,), _) = location.tick("work_due")
    assert request.tags[WHY] == "approval_waits"
    location.opened(BATCH)
    assert location.batches("work_due") == []
    asked(location, opened="1 hour", expires="59 minutes 59.9 seconds")
    assert location.batches("work_due") == []


def test_a_question_that_has_time_left_starts_nothing(location: Location) -> None:
    """Nor does one that was answered."""
    answered = asked(location, opened="2 hours", expires="1 hour")
    location.end(answered, "denied", "rejected")
    asked(location, opened="1 hour", expires="2 hours")
    location.opened(BATCH, ago="1 hour")
    assert location.batches("work_due") == []
