"""The shipped dagster.yaml is one that the installed Dagster accepts, and means what its comments say."""

from __future__ import annotations

import shutil
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.run_coordinator import QueuedRunCoordinator

from tests.postgres import Database

ROOT = Path(__file__).resolve().parent.parent


def test_dagster_yaml_makes_an_instance_on_postgres(
    tmp_path: Path, empty_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its storage takes the URL from DAGSTER_PG_URL, runs are queued fast and limited by batch, nothing phones home."""
    shutil.copy(ROOT / "dagster.yaml", tmp_path)
    monkeypatch.setenv("DAGSTER_PG_URL", empty_database.url(driver="psycopg2"))
    with dg.DagsterInstance.from_config(str(tmp_path)) as instance:
        run = instance.add_run(dg.DagsterRun(job_name="any", run_id="00000000-0000-4000-8000-000000000001"))
        instance.report_engine_event("stored, and announced by NOTIFY", run)
        assert type(instance.event_log_storage).__name__ == "PostgresEventLogStorage"
        assert len(instance.get_records_for_run(run.run_id).records) == 1

        assert isinstance(instance.run_coordinator, QueuedRunCoordinator)
        assert instance.run_coordinator.dequeue_interval_seconds == 1
        assert instance.run_coordinator.dequeue_use_threads
        assert instance.run_coordinator.dequeue_num_workers == 4
        limits = instance.get_concurrency_config().run_queue_config
        assert limits is not None
        assert limits.tag_concurrency_limits == [
            {"key": "failsafe/batch", "value": {"applyLimitPerUniqueValue": True}, "limit": 2}
        ]

        assert instance.run_monitoring_enabled
        assert instance.run_retries_enabled
        assert not instance.run_retries_retry_on_asset_or_op_failure
        assert not instance.telemetry_enabled
