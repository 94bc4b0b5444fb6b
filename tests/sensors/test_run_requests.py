"""Which runs the sensors for due work ask for."""

from __future__ import annotations

from datetime import timedelta

import dagster as dg
import pytest
from dagster import DagsterRunStatus

from policies.batches import daily
from policies.run_tags import BATCH, WHY
from sensors.due import LONGEST_REST, rest_after
from tests.sensors.conftest import Location

QUEUED, STARTING, STARTED = DagsterRunStatus.QUEUED, DagsterRunStatus.STARTING, DagsterRunStatus.STARTED
CANCELING, FAILURE, SUCCESS = DagsterRunStatus.CANCELING, DagsterRunStatus.FAILURE, DagsterRunStatus.SUCCESS


def test_queued_work_asks_for_a_run_that_says_why(location: Location) -> None:
    """A run of the workflow's own job on the request's batch; no run key, no run config, the reason in a tag."""
    location.queued("2026-01-05")
    ((request,), _) = location.tick("work_due")
    assert (request.job_name, request.partition_key) == ("refunds_process_batch", "2026-01-05")
    assert request.run_key is None
    assert request.run_config == {}
    assert request.tags[WHY] == "queued"
    assert request.tags[BATCH] == "refunds/2026-01-05"


def test_nothing_due_is_said(location: Location) -> None:
    """An empty store skips; so does work whose time has not come."""
    assert location.tick("work_due") == ([], "No batch is due.")
    location.older(location.queued("2026-01-05"), "-1 hour")
    assert location.tick("work_due") == ([], "No batch is due.")


def test_a_landed_approval_is_seen_by_its_own_sensor(location: Location) -> None:
    """The quick sensor starts runs for approvals and for nothing else; the slow one leaves them to it."""
    location.queued("2026-01-05")
    location.released("2026-01-06")
    ((request,), _) = location.tick("approvals_landed")
    assert (request.partition_key, request.tags[WHY]) == ("2026-01-06", "approval_landed")
    assert location.batches("work_due") == ["2026-01-05"]


def test_every_reason_is_named_the_most_pressing_first(location: Location) -> None:
    """One batch gets one run, whatever is due in it."""
    location.queued("2026-01-05")
    expired = location.queued("2026-01-05")
    location.superuser.run(
        "update requests set lease_token = gen_random_uuid(), lease_until = clock_timestamp() - interval '1 s'"
        " where id = :id",
        id=expired,
    )
    retried = location.queued("2026-01-05")
    location.superuser.run("update requests set attempts = 1 where id = :id", id=retried)
    ((request,), _) = location.tick("work_due")
    assert request.tags[WHY] == "retry_due, lease_expired, queued"


def test_the_least_recently_opened_batch_comes_first_and_twenty_are_enough(location: Location) -> None:
    """No batch waits behind one that is opened often; what exceeds a tick is left to the next."""
    for day in range(1, 26):
        location.queued(f"2026-03-{day:02}")
    location.opened("2026-03-01", ago="1 minute")
    location.opened("2026-03-02", ago="2 hours")
    for request_day in ("2026-03-03", "2026-03-04"):
        location.opened(request_day, ago="1 hour")
    asked = location.batches("work_due")
    assert len(asked) == 20
    assert asked == [f"2026-03-{day:02}" for day in range(5, 25)]
    for day in range(5, 26):
        location.add_run(f"2026-03-{day:02}", QUEUED)
    assert location.batches("work_due") == ["2026-03-02", "2026-03-03", "2026-03-04", "2026-03-01"]


def test_keys_that_are_no_partitions_now_are_left_out_and_counted(location: Location) -> None:
    """One of them would otherwise fail the whole tick, and every later one."""
    location.queued("2025-12-31")
    location.queued("2199-01-01")
    asked, skipped = location.tick("work_due")
    assert asked == []
    assert "2 batches are no partitions of their jobs now" in skipped
    assert "refunds/2025-12-31" in skipped
    location.queued("2026-01-05")
    assert location.batches("work_due") == ["2026-01-05"]


def test_a_key_of_another_shape_is_left_out(location: Location) -> None:
    """A store that holds what this code never wrote poisons no tick."""
    location.queued("2026-01-05-07")
    location.queued("..., [x]")
    assert "2 batches are no partitions" in location.tick("work_due")[1]


def test_one_sensor_serves_every_workflow_of_the_location(location: Location) -> None:
    """Batches of the same key are apart by their workflow; those of an unknown workflow are not its business."""
    location.load(location.workflow("refunds"), location.workflow("returns", daily("2026-01-04")))
    location.superuser.run(
        "insert into workflows (name, batch_kind, batch_zone, since) values"
        " ('returns', 'day', 'UTC', '2026-01-04'), ('elsewhere', 'day', 'UTC', '2026-01-01')"
    )
    location.queued("2026-01-05")
    for workflow in ("returns", "elsewhere"):
        request_id = location.queued("2026-01-05")
        location.superuser.run("update requests set workflow = :name where id = :id", name=workflow, id=request_id)
    asked, _ = location.tick("work_due")
    assert sorted((request.job_name, request.tags[BATCH]) for request in asked) == [
        ("refunds_process_batch", "refunds/2026-01-05"),
        ("returns_process_batch", "returns/2026-01-05"),
    ]
    location.add_run("2026-01-05", QUEUED)
    assert [request.job_name for request in location.tick("work_due")[0]] == ["returns_process_batch"]


@pytest.mark.parametrize("status", [QUEUED, STARTING, DagsterRunStatus.NOT_STARTED, STARTED])
@pytest.mark.parametrize("sensor", ["work_due", "approvals_landed"])
def test_a_run_that_has_yet_to_open_its_batch_is_enough(
    location: Location, status: DagsterRunStatus, sensor: str
) -> None:
    """It will see whatever is due when it opens the batch, so no second one is piled upon it for any reason."""
    location.queued("2026-01-05")
    location.released("2026-01-05")
    location.add_run("2026-01-05", status)
    assert location.tick(sensor)[0] == []
    location.queued("2026-01-06")
    location.released("2026-01-06")
    assert location.batches(sensor) == ["2026-01-06"]


@pytest.mark.parametrize("status", [STARTED, CANCELING])
def test_a_run_at_work_holds_back_newly_queued_work_only(location: Location, status: DagsterRunStatus) -> None:
    """It goes on until nothing is due; but an approval that lands while it works does not wait for its end."""
    run_id = location.add_run("2026-01-05", status)
    location.opened("2026-01-05", ago="1 second", run_id=run_id)
    location.queued("2026-01-05")
    assert location.tick("work_due")[0] == []
    location.released("2026-01-05")
    ((request,), _) = location.tick("approvals_landed")
    assert request.tags[WHY] == "approval_landed"
    location.superuser.run("update requests set attempts = 1 where state = 'received'")
    assert location.tick("work_due")[0][0].tags[WHY] == "retry_due"


def test_what_a_run_at_work_has_seen_starts_no_further_runs(location: Location) -> None:
    """An approval that landed before the last run opened the batch is being dealt with: no run every four seconds."""
    location.older(location.released("2026-01-05"), "1 minute")
    run_id = location.add_run("2026-01-05", STARTED)
    location.opened("2026-01-05", ago="10 seconds", run_id=run_id)
    assert location.tick("approvals_landed")[0] == []
    location.instance.report_run_failed(location.run(run_id))
    assert location.batches("approvals_landed") == ["2026-01-05"]


def test_ended_runs_hold_nothing_back(location: Location) -> None:
    """What is still due after a run is due for the next one."""
    run_id = location.add_run("2026-01-05", SUCCESS)
    location.opened("2026-01-05", run_id=run_id)
    location.older(location.queued("2026-01-05"), "1 hour")
    assert location.batches("work_due") == ["2026-01-05"]


def test_a_batch_whose_runs_find_nothing_rests_twice_as_long_each_time(location: Location) -> None:
    """30 s after the first idle run, doubling to ten minutes, by the database clock."""
    location.older(location.queued("2026-01-05"), "1 day")
    for idle_runs, seconds in ((1, 30), (2, 60), (3, 120), (4, 240), (5, 480), (6, 600), (60, 600)):
        location.opened("2026-01-05", ago=f"{seconds - 3} seconds", idle_runs=idle_runs)
        assert location.tick("work_due")[0] == [], f"rests after {idle_runs} idle runs"
        location.opened("2026-01-05", ago=f"{seconds + 1} seconds", idle_runs=idle_runs)
        assert location.batches("work_due") == ["2026-01-05"], f"is due again after {idle_runs} idle runs"


def test_a_resting_batch_is_woken_by_anything_new(location: Location) -> None:
    """Rest is for what the last run could do nothing about, not for what came after it."""
    location.older(location.queued("2026-01-05"), "1 day")
    location.opened("2026-01-05", ago="1 second", idle_runs=9)
    assert location.tick("work_due")[0] == []
    location.released("2026-01-05")
    assert location.batches("approvals_landed") == ["2026-01-05"]


def test_runs_that_fail_before_they_open_the_batch_pause_it(location: Location) -> None:
    """A broken environment costs one run every half minute and then fewer, not one every four seconds."""
    location.released("2026-01-05")
    location.add_run("2026-01-05", FAILURE)
    assert location.tick("approvals_landed")[0] == []
    opened = location.add_run("2026-01-06", FAILURE)
    location.released("2026-01-06")
    location.opened("2026-01-06", ago="1 second", run_id=opened)
    assert location.batches("approvals_landed") == ["2026-01-06"], "a run that did open its batch is no such run"


def test_a_start_that_was_lost_is_not_waited_for(location: Location, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run whose process never came up must not hold its batch back for ever."""
    location.queued("2026-01-05")
    location.add_run("2026-01-05", STARTING)
    assert location.tick("work_due")[0] == []
    monkeypatch.setattr("sensors.under_way.LOST_START", timedelta(0))
    assert location.batches("work_due") == ["2026-01-05"]


def test_rest_is_never_longer_than_ten_minutes() -> None:
    """Whatever number of failures."""
    assert [rest_after(times).total_seconds() for times in (1, 2, 5)] == [30, 60, 480]
    assert rest_after(10_000) == LONGEST_REST


def test_sensors_start_running_and_keep_no_cursor(location: Location) -> None:
    """They only read, so nothing has to be switched on; the interval of the quick one fits the daemon's loop of 5 s."""
    sensors = {sensor.name: sensor for sensor in location.definitions.get_repository_def().sensor_defs}
    assert {name: sensor.minimum_interval_seconds for name, sensor in sensors.items()} == {
        "approvals_landed": 4,
        "work_due": 30,
        "batches_settled": 60,
    }
    assert {sensor.default_status for sensor in sensors.values()} == {dg.DefaultSensorStatus.RUNNING}
