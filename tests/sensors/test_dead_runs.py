"""Runs whose process died are reported ended, so that Dagster frees their slot."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import dagster as dg
import pytest
from dagster import DagsterRunStatus

from policies.run_tags import WHY
from tests.ops import toy
from tests.sensors.conftest import Location

ROOT = Path(__file__).resolve().parent.parent.parent
STARTED, CANCELING = DagsterRunStatus.STARTED, DagsterRunStatus.CANCELING


def test_a_run_that_went_silent_is_reported_failed_and_its_work_taken_up(location: Location) -> None:
    """Two lease times without a heartbeat, by the database clock; in the same tick the batch gets a new run."""
    run_id = location.add_run("2026-01-05", STARTED)
    location.opened("2026-01-05", ago="50 seconds", run_id=run_id)
    location.queued("2026-01-05")
    assert location.tick("work_due")[0] == [], "30 s is the lease, so 50 s of silence is no death yet"
    location.superuser.run("update batch_runs set beat_at = clock_timestamp() - interval '61 s'")
    assert location.batches("work_due") == ["2026-01-05"]
    assert location.run(run_id).status == DagsterRunStatus.FAILURE
    said = [event.message for event in location.instance.all_logs(run_id)]
    assert any("Nothing was heard of this run for 61 s" in message for message in said)


def test_a_run_that_beats_is_left_alone(location: Location) -> None:
    """However long ago it opened its batch."""
    run_id = location.add_run("2026-01-05", STARTED)
    location.opened("2026-01-05", ago="3 hours", run_id=run_id)
    location.superuser.run("update batch_runs set beat_at = clock_timestamp() - interval '5 s'")
    location.tick("work_due")
    assert location.run(run_id).status == STARTED


def test_silence_is_measured_in_leases(location: Location, monkeypatch: pytest.MonkeyPatch) -> None:
    """A location with short leases notices sooner."""
    monkeypatch.setenv("FAILSAFE_LEASE_SECONDS", "5")
    run_id = location.add_run("2026-01-05", STARTED)
    location.opened("2026-01-05", ago="11 seconds", run_id=run_id)
    location.tick("work_due")
    assert location.run(run_id).status == DagsterRunStatus.FAILURE


def test_a_run_that_never_opened_its_batch_is_given_two_minutes(
    location: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may still be loading code."""
    run_id = location.add_run("2026-01-05", STARTED)
    location.tick("work_due")
    assert location.run(run_id).status == STARTED
    monkeypatch.setattr("sensors.heartbeats.OPENING_SECONDS", 0.0)
    location.tick("work_due")
    assert location.run(run_id).status == DagsterRunStatus.FAILURE


def test_a_silent_run_that_was_being_cancelled_ends_as_cancelled(location: Location) -> None:
    """Somebody asked for its end, and it has ended."""
    run_id = location.add_run("2026-01-05", CANCELING)
    location.opened("2026-01-05", ago="2 minutes", run_id=run_id)
    location.tick("work_due")
    assert location.run(run_id).status == DagsterRunStatus.CANCELED


def test_runs_of_other_jobs_are_not_ours_to_end(location: Location, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a report nor somebody else's job has heartbeats in our store, however long it runs."""
    monkeypatch.setattr("sensors.heartbeats.OPENING_SECONDS", 0.0)
    others = [location.add_job_run(job, STARTED, {}) for job in ("refunds_report_batch", "nightly")]
    location.tick("work_due")
    assert {location.run(run_id).status for run_id in others} == {STARTED}


VICTIM = """
import sys
import time
from dataclasses import replace
from pathlib import Path
import dagster as dg
from ops.batch import WorkflowRun
from tests.ops import toy
from workflow_assets.batch_job import batch_job

folder, url, batch, home = sys.argv[1:]

def hang(request):
    print("at work", flush=True)
    time.sleep(600)

workflow = replace(toy.toy_workflow(Path(folder), Path(folder) / "till.sqlite"), extractor=hang)
with dg.DagsterInstance.from_config(home) as instance:
    batch_job(workflow).execute_in_process(
        partition_key=batch, instance=instance, resources={"workflow": WorkflowRun(workflow, url, lease_seconds=2)}
    )
"""


def test_a_killed_process_is_noticed(location: Location, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker killed without warning leaves a started run behind; the sensor ends it and has its work taken up."""
    monkeypatch.setenv("FAILSAFE_LEASE_SECONDS", "2")
    home = tmp_path / "home"
    home.mkdir()
    (home / "dagster.yaml").write_text("telemetry: {enabled: false}")
    url = location.database.url()
    payloads = {"one": {"order_id": "A1", "text": "TOTAL 20.00 EUR"}}
    batch = toy.queue(url, location.workflow("refunds"), location.shop.token, payloads)
    command = [sys.executable, "-c", VICTIM, str(tmp_path), url, batch, str(home)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as victim:
        assert victim.stdout is not None
        said: list[str] = []
        while not said or said[-1] not in ("at work\n", ""):
            said.append(victim.stdout.readline())
        assert said[-1], "".join(said)
        os.kill(victim.pid, signal.SIGKILL)
    with dg.DagsterInstance.from_config(str(home)) as instance:
        location.instance = instance
        (run,) = instance.get_runs()
        assert run.status == STARTED
        deadline = time.monotonic() + 30
        asked: list[dg.RunRequest] = []
        while location.run(run.run_id).status == STARTED and time.monotonic() < deadline:
            time.sleep(0.2)
            asked += location.tick("work_due")[0]
        assert location.run(run.run_id).status == DagsterRunStatus.FAILURE
        assert {(request.partition_key, request.tags[WHY]) for request in asked} == {(batch, "lease_expired")}
