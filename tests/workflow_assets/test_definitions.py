"""What a code location gets by `fs.definitions`, and what it must not get: secrets, and slow imports."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from policies.batches import BatchWindows, daily, hourly
from policies.errors import DefinitionError
from resources.run_settings import lease_seconds
from tests.ops import toy
from tests.postgres import Database
from workflow_assets.batch_job import batch_job
from workflow_assets.definitions import definitions
from workflow_assets.partitions import batch_partitions

ROOT = Path(__file__).resolve().parent.parent.parent
TOKEN = "canary-of-the-provider"
HEAVY = ("pandas", "numpy", "starlette", "uvicorn", "typer", "jinja2")
"""Dagster's own storages import alembic and rich, so a run has these whatever we do; our modules add neither."""


def run_python(code: str, folder: Path, **environment: str) -> dict[str, Any]:
    """Run a script in a fresh interpreter beside the location; returns the JSON document that it prints last."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("FAILSAFE_", "DAGSTER_PG"))}
    variables = {"LOCATION_FOLDER": str(folder), "TILL_TOKEN": TOKEN, "PYTHONWARNINGS": "error", **environment}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=inherited | variables, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


LOAD = f"""
import json, sys
import dagster as dg
from tests.workflow_assets.location import defs
repository = defs.get_repository_def()
repository.load_all_definitions()
assets = repository.asset_graph
print(json.dumps({{
    "jobs": sorted(job.name for job in repository.get_all_jobs() if not job.name.startswith("__")),
    "sensors": sorted(sensor.name for sensor in repository.sensor_defs),
    "assets": sorted(key.to_user_string() for key in assets.get_all_asset_keys()),
    "checks": sorted(f"{{key.asset_key.to_user_string()}}:{{key.name}}" for key in assets.asset_check_keys),
    "upstream": [key.to_user_string() for key in assets.get(dg.AssetKey(["refunds", "request_batch"])).parent_keys],
    "heavy": [name for name in {(*HEAVY, "alembic", "rich")!r} if name in sys.modules],
}}))
"""


def test_two_workflows_load_in_one_location_beside_a_teams_own_assets(tmp_path: Path) -> None:
    """In a fresh interpreter, with warnings as errors and without a database, a run's imports kept out."""
    found = run_python(LOAD, tmp_path)
    assert found["jobs"] == [
        "refunds_process_batch",
        "refunds_report_batch",
        "returns_process_batch",
        "returns_report_batch",
    ]
    assert found["sensors"] == ["approvals_landed", "batches_settled", "work_due"]
    names = ("audit_ledger", "evaluation_metrics", "request_batch")
    own = [f"{workflow}/{name}" for workflow in ("refunds", "returns") for name in names]
    assert found["assets"] == sorted([*own, "orders", "dashboard"])
    assert found["checks"] == sorted(
        f"{workflow}/{check}"
        for workflow in ("refunds", "returns")
        for check in (
            "audit_ledger:chain_intact",
            "evaluation_metrics:no_duplicate_effects",
            "evaluation_metrics:no_effect_without_authority",
            "request_batch:approvals_answered",
            "request_batch:no_open_cases",
            "request_batch:no_stuck_work",
            "request_batch:no_unreconciled_unknown",
        )
    )
    assert found["upstream"] == ["orders"]
    assert found["heavy"] == []


RUN = f"""
import json, os, sys
import dagster as dg
import sqlalchemy as sa
from dagster._core.remote_representation.external_data import RepositorySnap
from dagster_shared.serdes import serialize_value
from tests.ops import toy
from tests.workflow_assets.location import defs, folder, refunds

url = os.environ["FAILSAFE_DATABASE_URL"]
toy.new_ledger(folder)
token = toy.principal(url, "shop", ["clerk"])
secrets = [token, os.environ["TILL_TOKEN"], sa.make_url(url).password]
batch = toy.queue(url, refunds, token, {{
    "one": {{"order_id": "A1", "text": "TOTAL 20.00 EUR"}},
    "loud": {{"order_id": "loud", "text": "TOTAL 20.00 EUR"}},
}})
with dg.DagsterInstance.from_config(str(folder)) as instance:
    def run(job):
        result = defs.resolve_job_def(job).execute_in_process(partition_key=batch, instance=instance)
        return result.success
    succeeded = run("refunds_process_batch")
    heavy = [name for name in {HEAVY!r} if name in sys.modules]
    succeeded = run("refunds_report_batch") and succeeded
    snapshot = serialize_value(RepositorySnap.from_def(defs.get_repository_def()))
    runs = instance.get_run_records()
    kept = [serialize_value(record.dagster_run) for record in runs]
    kept += [serialize_value(event) for record in runs for event in instance.all_logs(record.dagster_run.run_id)]
    tags = [record.dagster_run.tags for record in runs]
shown = "\\n".join([snapshot, *kept])
print(json.dumps({{
    "succeeded": succeeded, "heavy": heavy, "states": toy.states(url), "tags": tags, "shown": len(shown),
    "leaks": [word for word in secrets if word in shown],
    "files": [str(path) for path in folder.rglob("*") if path.is_file() and any(
        word.encode() in path.read_bytes() for word in secrets)],
}}))
"""


def test_a_run_shows_no_secret_and_imports_nothing_heavy(database: Database, tmp_path: Path) -> None:
    """Neither the definitions that the web server reads nor config, tags, events and logs of runs hold a canary.

    The provider even puts its token into an error.
    """
    (tmp_path / "dagster.yaml").write_text("telemetry: {enabled: false}")
    url = database.superuser
    if not url.host:  # the embedded server asks for no password, so any will do
        url = url.set(password="canary-of-the-database")
    found = run_python(
        RUN,
        tmp_path,
        FAILSAFE_DATABASE_URL=url.render_as_string(hide_password=False),
        DAGSTER_HOME=str(tmp_path),
    )
    assert found["succeeded"]
    assert found["states"] == {"one": "completed", "loud": "executing"}
    assert found["shown"] > 10_000
    assert found["leaks"] == []
    assert found["files"] == []
    assert found["heavy"] == []
    process_batch = next(tags for tags in found["tags"] if "failsafe/batch" in tags)
    assert process_batch["failsafe/batch"].startswith("refunds/20")
    assert process_batch["failsafe/completed"] == "1"


def test_names_are_unique_and_there_is_at_least_one(tmp_path: Path) -> None:
    """A mistake is told when the location loads."""
    workflow = toy.toy_workflow(tmp_path, tmp_path / "till.sqlite")
    with pytest.raises(DefinitionError, match="two workflows are named 'refunds'"):
        definitions(workflow, workflow)
    with pytest.raises(DefinitionError, match="at least one workflow"):
        definitions()


def test_a_batch_job_needs_no_config_and_tags_every_run(tmp_path: Path) -> None:
    """Whatever starts it: sensor, person, backfill; nothing but the partition key is needed."""
    job = batch_job(toy.toy_workflow(tmp_path, tmp_path / "till.sqlite"))
    assert job.name == "refunds_process_batch"
    assert job.executor_def is dg.in_process_executor
    assert job.tags["dagster/retry_on_asset_or_op_failure"] == "false"
    assert job.tags["dagster/retry_strategy"] == "ALL_STEPS"
    assert job.partitioned_config is not None
    assert job.partitioned_config.get_run_config_for_partition_key("2026-01-05") == {}
    tags = job.partitioned_config.get_tags_for_partition_key("2026-01-05", job_name=job.name)
    assert tags["failsafe/batch"] == "refunds/2026-01-05"


@pytest.mark.parametrize(
    "windows",
    [
        daily("2025-11-20"),
        daily("2025-11-20", "Europe/Berlin"),
        daily("2025-11-20", "Pacific/Auckland"),
        daily("2025-11-20", "America/Santiago"),  # its clocks change at midnight
        hourly("2025-11-20"),
    ],
    ids=lambda windows: f"{windows.kind} {windows.zone}",
)
def test_partitions_are_the_batches(windows: BatchWindows) -> None:
    """For more than a year, clock changes included, keys and windows are the same; the current one counts."""
    now = datetime(2026, 11, 29, 0, 0, 1, tzinfo=UTC)
    partitions = batch_partitions(windows)
    keys = list(windows.keys(now))
    assert list(partitions.get_partition_keys(current_time=now)) == keys
    for key in keys[:: 1 if windows.kind == "day" else 11]:
        window = partitions.time_window_for_partition_key(key)
        assert (window.start.astimezone(UTC), window.end.astimezone(UTC)) == windows.bounds(key)


def test_a_partition_exists_from_the_first_instant_of_its_window() -> None:
    """A request received one moment after midnight has a partition to be processed in."""
    midnight = datetime(2026, 3, 1, tzinfo=UTC)
    partitions = batch_partitions(daily("2026-01-01"))
    assert partitions.get_partition_keys(current_time=midnight + timedelta(microseconds=1))[-1] == "2026-03-01"
    assert partitions.get_partition_keys(current_time=midnight - timedelta(seconds=1))[-1] == "2026-02-28"


@pytest.mark.parametrize("text", ["soon", "0", "-5", "nan", "inf", "86400"])
def test_a_lease_length_that_means_nothing_is_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A typing mistake must not become a lease of no time or of for ever."""
    monkeypatch.setenv("FAILSAFE_LEASE_SECONDS", text)
    with pytest.raises(DefinitionError, match="FAILSAFE_LEASE_SECONDS"):
        lease_seconds()


def test_a_lease_lasts_half_a_minute_unless_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests and demonstrations set it lower."""
    monkeypatch.delenv("FAILSAFE_LEASE_SECONDS", raising=False)
    assert lease_seconds() == 30.0
    monkeypatch.setenv("FAILSAFE_LEASE_SECONDS", "2.5")
    assert lease_seconds() == 2.5
