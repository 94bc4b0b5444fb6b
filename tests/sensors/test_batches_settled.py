"""Which settled batches get their assets made."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from dagster import DagsterRunStatus

from policies.batches import hourly
from policies.run_tags import WHY
from policies.settling import GRACE, PATIENCE, is_settled
from resources.store.engine import Duty, engine_for, transaction
from resources.store.reports import batch_change, record_report
from tests.sensors.conftest import Location

BATCH = "2026-01-05"


def end(location: Location, batch: str = BATCH) -> None:
    """Bring every request of a batch to its end."""
    for request_id in location.ids(batch):
        location.end(request_id, "cancelled", "cancelled")


def report(location: Location, batch: str = BATCH) -> None:
    """Note a report, as the job does."""
    with transaction(engine_for(Duty.WORKER, location.database.url())) as connection:
        record_report(connection, "refunds", batch, batch_change(connection, "refunds", batch))


def days_ago(days: int) -> str:
    """A daily key."""
    return (datetime.now(UTC) - timedelta(days=days)).strftime("%Y-%m-%d")


def test_a_settled_batch_asks_for_its_report(location: Location) -> None:
    """Its window is over and every request has ended: a run of the report job on that partition, without run key."""
    location.queued(BATCH)
    end(location)
    ((request,), _) = location.tick("batches_settled")
    assert (request.job_name, request.partition_key, request.run_key) == ("refunds_report_batch", BATCH, None)
    assert request.tags[WHY] == "settled"


def test_a_batch_with_open_requests_waits_a_day(location: Location) -> None:
    """Then it is reported all the same, and says how many are open."""
    yesterday, before = days_ago(1), days_ago(2)
    location.queued(yesterday)
    location.queued(before)
    location.queued(before)
    ((request,), _) = location.tick("batches_settled")
    assert request.partition_key == before
    assert request.tags[WHY] == "closed a day ago with 2 open requests"


def test_parked_requests_do_not_keep_a_batch_open(location: Location, monkeypatch: pytest.MonkeyPatch) -> None:
    """They wait for a person, perhaps for weeks, so the batch of yesterday is reported before a day has passed."""
    monkeypatch.setattr("policies.settling.GRACE", timedelta(0))  # the test may run just after midnight
    yesterday = days_ago(1)
    location.superuser.move(location.queued(yesterday), "abstained", "needs_review")
    assert location.batches("batches_settled") == [yesterday]


def test_the_window_that_is_open_is_not_reported(location: Location) -> None:
    """More requests may come."""
    location.queued(days_ago(0))
    end(location, days_ago(0))
    assert location.tick("batches_settled") == ([], "No settled batch needs a report.")


def test_an_hourly_workflow_settles_by_the_hour(location: Location) -> None:
    """Windows are those of the workflow."""
    location.load(location.workflow("refunds", hourly("2026-01-01")))
    location.queued("2026-01-05-07")
    end(location, "2026-01-05-07")
    assert location.batches("batches_settled") == ["2026-01-05-07"]


def test_a_reported_batch_is_reported_again_after_any_change(location: Location) -> None:
    """A redrive, a discard, a vote: whatever moves a request makes the assets anew, once."""
    parked, waiting = location.queued(BATCH), location.queued(BATCH)
    location.superuser.move(parked, "abstained", "needs_review")
    report(location)
    assert location.tick("batches_settled")[0] == []
    location.end(waiting, "cancelled", "cancelled")
    assert location.batches("batches_settled") == [BATCH]
    report(location)
    assert location.tick("batches_settled")[0] == []
    location.end(parked, "discarded", "failed")
    assert location.batches("batches_settled") == [BATCH]
    report(location)
    assert location.tick("batches_settled")[0] == []


def test_a_change_while_the_report_is_made_is_not_lost(location: Location) -> None:
    """The report notes what it was made from, not what stands when it ends."""
    request_id = location.queued(BATCH)
    location.superuser.move(request_id, "abstained", "needs_review")
    with transaction(engine_for(Duty.WORKER, location.database.url())) as connection:
        seen = batch_change(connection, "refunds", BATCH)
        location.end(request_id, "discarded", "failed")
        record_report(connection, "refunds", BATCH, seen)
    assert location.batches("batches_settled") == [BATCH]


@pytest.mark.parametrize("status", [DagsterRunStatus.QUEUED, DagsterRunStatus.STARTED])
def test_a_report_under_way_is_enough(location: Location, status: DagsterRunStatus) -> None:
    """It is not started twice; one of another batch is no reason to wait."""
    for batch in (BATCH, "2026-01-06"):
        location.queued(batch)
        end(location, batch)
    location.add_job_run("refunds_report_batch", status, {"dagster/partition": BATCH})
    assert location.batches("batches_settled") == ["2026-01-06"]


def test_a_report_that_fails_is_tried_again_later(location: Location) -> None:
    """Not every minute: a failure is seen by people, and its cause seldom goes away by itself."""
    location.queued(BATCH)
    end(location)
    run_id = location.add_job_run("refunds_report_batch", DagsterRunStatus.FAILURE, {"dagster/partition": BATCH})
    assert location.tick("batches_settled")[0] == []
    location.instance.delete_run(run_id)
    assert location.batches("batches_settled") == [BATCH]


def test_a_backlog_is_reported_in_portions(location: Location) -> None:
    """Twenty a tick; a batch that is no partition now is left out and counted."""
    for day in range(1, 26):
        location.queued(f"2026-03-{day:02}")
        end(location, f"2026-03-{day:02}")
    location.queued("2025-12-31")
    end(location, "2025-12-31")
    asked = location.batches("batches_settled")
    assert asked == [f"2026-03-{day:02}" for day in range(1, 21)]


def test_settling_is_a_matter_of_time_and_open_requests() -> None:
    """Ten minutes after the window without open requests, a day after it with some."""
    window_end = datetime(2026, 1, 6, tzinfo=UTC)
    moment = timedelta(microseconds=1)
    assert is_settled(window_end, window_end + GRACE, 0)
    assert not is_settled(window_end, window_end + GRACE - moment, 0)
    assert is_settled(window_end, window_end + PATIENCE, 1)
    assert not is_settled(window_end, window_end + PATIENCE - moment, 1)
