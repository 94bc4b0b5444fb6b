"""When publishing starts, and what its job does and says."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import dagster as dg
import pytest
from dagster import DagsterRunStatus
from dagster._core.remote_representation.external_data import RepositorySnap
from dagster_shared.serdes import serialize_value
from starlette.responses import Response

from policies.run_tags import PARKED, PUBLISHED, WHY
from resources.store.engine import Duty
from sensors import outbox_waiting as sensor
from tests.outbox.conftest import write_event
from tests.outbox.receiver import SECRET, Receiver, receiving
from tests.sensors.conftest import Location
from workflow_assets.definitions import definitions

JOB, SENSOR = "publish_outbox", "outbox_waiting"


@pytest.fixture
def receiver(location: Location, monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    """The receiver that the location publishes to, once it is loaded with `outbox`."""
    import dagster_failsafe as fs

    with receiving() as running:
        monkeypatch.setenv("HOOK_URL", running.url)
        monkeypatch.setenv("HOOK_SECRET", SECRET)
        webhook = fs.Webhook(url=dg.EnvVar("HOOK_URL"), secret=dg.EnvVar("HOOK_SECRET"), hosts=["127.0.0.1"])
        location.definitions = definitions(location.workflow("refunds"), outbox=webhook)
        yield running


def add(location: Location, aggregate: str = "r1", payload: str = "{}") -> None:
    """An event that waits."""
    with location.superuser.engine.begin() as connection:
        write_event(connection, aggregate, payload)


def run_job(location: Location) -> dg.ExecuteInProcessResult:
    """One run, as the sensor would start it."""
    job = location.definitions.resolve_job_def(JOB)
    return job.execute_in_process(instance=location.instance, raise_on_error=False)


def ended(location: Location, status: DagsterRunStatus, published: str | None = None) -> None:
    """A run of the job that has ended, with its tag if it came so far."""
    location.add_job_run(JOB, status, {} if published is None else {PUBLISHED: published})


def test_without_a_webhook_nothing_is_published(location: Location) -> None:
    """Neither job nor sensor exists, and the events stay."""
    add(location)
    repository = location.definitions.get_repository_def()
    assert not repository.has_job(JOB)
    assert SENSOR not in [one.name for one in repository.sensor_defs]
    assert location.superuser.value("select count(*) from outbox where published_at is null") == 1


def test_an_event_that_waits_starts_a_run(location: Location, receiver: Receiver) -> None:
    """No run key, and the tick says how many and for how long; without events it says that there is nothing."""
    definition = location.definitions.get_repository_def().get_sensor_def(SENSOR)
    assert definition.default_status is dg.DefaultSensorStatus.RUNNING
    # The daemon looks every 5 s: this is every second turn, and none is missed for a few milliseconds.
    assert 5 < (definition.minimum_interval_seconds or 0) < 10
    assert location.tick(SENSOR) == ([], "No event is due to be published.")
    add(location)
    add(location)
    add(location, "r2")
    ((request,), _) = location.tick(SENSOR)
    assert (request.job_name, request.run_key, request.run_config) == (JOB, None, {})
    assert request.tags[WHY].startswith("2 requests have an event to publish, the oldest for ")


def test_a_tick_changes_nothing_and_reads_as_the_auditor(
    location: Location, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sensor decides when, never what."""
    add(location)
    before = location.contents()
    for duty in Duty:
        if duty is not Duty.AUDITOR:
            monkeypatch.setenv(f"FAILSAFE_{duty.name}_URL", "postgresql+psycopg://nobody@127.0.0.1:1/nowhere")
    location.tick(SENSOR)
    assert location.contents() == before


def test_the_run_publishes_and_says_so(location: Location, receiver: Receiver) -> None:
    """Counts in its tags; afterwards nothing is due."""
    add(location)
    add(location)
    result = run_job(location)
    assert result.success
    assert location.run(result.run_id).tags[PUBLISHED] == "2"
    assert receiver.places == [("request/r1", 1), ("request/r1", 2)]
    assert location.tick(SENSOR) == ([], "No event is due to be published.")


def test_neither_address_nor_secret_is_shown(location: Location, receiver: Receiver) -> None:
    """Not in the definitions that the web server reads, nor in config, tags, events and logs of a run that fails."""
    add(location)
    location.superuser.run("update outbox set attempts = 7")
    receiver.answer = lambda _: Response(f"{receiver.url} {SECRET}", status_code=400)
    run_id = run_job(location).run_id
    shown = [serialize_value(RepositorySnap.from_def(location.definitions.get_repository_def()))]
    shown += [serialize_value(location.run(run_id))]
    shown += [serialize_value(event) for event in location.instance.all_logs(run_id)]
    assert len("".join(shown)) > 10_000
    assert [secret for secret in (SECRET, SECRET[6:], receiver.url) if secret in "".join(shown)] == []


def test_a_run_that_gave_something_up_is_red_and_the_next_one_is_not_held_back(
    location: Location, receiver: Receiver
) -> None:
    """A person has to know; publishing itself works."""
    add(location)
    location.superuser.run("update outbox set attempts = 7")
    receiver.answer = lambda _: Response(status_code=400)
    result = run_job(location)
    assert not result.success
    run = location.run(result.run_id)
    assert (run.status, run.tags[PARKED], run.tags[PUBLISHED]) == (DagsterRunStatus.FAILURE, "1", "0")
    (failure,) = [event for event in result.all_events if event.is_step_failure]
    said = failure.step_failure_data.error_display_string
    assert "1 events were given up" in said
    assert "effect.done of request r1" in said
    assert "the receiver answered 400 (attempt 8)" in said
    assert SECRET not in said
    add(location)
    assert len(location.tick(SENSOR)[0]) == 1


@pytest.mark.parametrize("status", ["QUEUED", "NOT_STARTED", "STARTING", "STARTED", "CANCELING"])
@pytest.mark.usefixtures("receiver")
def test_one_run_at_a_time_is_enough(location: Location, status: str) -> None:
    """Two would only share the work."""
    add(location)
    location.add_job_run(JOB, DagsterRunStatus(status), {})
    requests, why = location.tick(SENSOR)
    assert not requests
    assert why.endswith("but a run is under way.")


def test_a_run_whose_process_is_gone_is_not_waited_for(
    location: Location, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would stay "started" for ever."""
    add(location)
    location.add_job_run(JOB, DagsterRunStatus.STARTED, {})
    monkeypatch.setattr(sensor, "RUN_TAKES", timedelta(0))
    assert len(location.tick(SENSOR)[0]) == 1


def test_runs_that_publish_nothing_make_the_next_one_wait(
    location: Location, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the receiver is down, or the environment broken, a process every ten seconds would change nothing."""
    add(location)
    ended(location, DagsterRunStatus.SUCCESS, published="3")
    assert len(location.tick(SENSOR)[0]) == 1
    ended(location, DagsterRunStatus.SUCCESS, published="0")
    ended(location, DagsterRunStatus.FAILURE)
    requests, why = location.tick(SENSOR)
    assert not requests
    assert "the last 2 runs published nothing, so the next one waits" in why
    monkeypatch.setattr(sensor, "rest_after", lambda times: timedelta(seconds=-1) if times == 2 else timedelta(days=1))
    assert len(location.tick(SENSOR)[0]) == 1, "the rest is over"
