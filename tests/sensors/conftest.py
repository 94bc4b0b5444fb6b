"""A store with requests, a Dagster instance, and ticks of the sensors that a location loads."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import dagster as dg
import pytest
from dagster import DagsterRunStatus, RunRequest
from dagster._core.remote_origin import RegisteredCodeLocationOrigin, RemoteJobOrigin, RemoteRepositoryOrigin

from policies.batches import BatchWindows, daily
from policies.run_tags import BATCH, batch_tag
from resources.workflow import Workflow
from tests.ops import toy
from tests.postgres import Database
from tests.store.requests import Person, Superuser
from workflow_assets.definitions import definitions


class Location:
    """A code location with its sensors, beside a real instance and a real store."""

    def __init__(self, database: Database, folder: Path, instance: dg.DagsterInstance) -> None:
        self.database = database
        self.instance = instance
        self.superuser = Superuser(database)
        self.shop: Person = self.superuser.person("shop", ["clerk"], kind="service")
        self._folder = folder
        self._ledger = toy.new_ledger(folder)
        self.load(self.workflow("refunds"))

    def workflow(self, name: str, batches: BatchWindows | None = None) -> Workflow:
        """A toy workflow."""
        workflow = toy.toy_workflow(self._folder, self._ledger, name=name)
        return replace(workflow, batches=batches or daily("2026-01-01"))

    def load(self, *workflows: Workflow) -> None:
        """Load the location anew."""
        self.definitions = definitions(*workflows)

    def tick(self, sensor: str) -> tuple[Sequence[RunRequest], str]:
        """Evaluate a sensor as the daemon does: resolved run requests, or why there are none."""
        context = dg.build_sensor_context(instance=self.instance, definitions=self.definitions)
        found = self.definitions.get_repository_def().get_sensor_def(sensor).evaluate_tick(context)
        assert found.cursor is None
        return found.run_requests or [], found.skip_message or ""

    def batches(self, sensor: str) -> list[str]:
        """The batches that a tick asks runs for."""
        return [request.partition_key or "" for request in self.tick(sensor)[0]]

    def queued(self, batch: str, operation_id: str | None = None) -> uuid.UUID:
        """A request that waits to be processed."""
        return self._in_batch(batch, self.superuser.received(self.shop, operation_id or uuid.uuid4().hex))

    def released(self, batch: str) -> uuid.UUID:
        """A request that a person has just released."""
        asked = self.superuser.asked(self.shop, uuid.uuid4().hex)
        self.superuser.run(
            "insert into approval_resolutions (approval_id, outcome, resolved_at)"
            " values (:id, 'released', clock_timestamp())",
            id=asked.approval_id,
        )
        self.superuser.run(
            "update requests set state = 'executing', last_event = 'approved', state_seq = state_seq + 1,"
            " next_eligible_at = clock_timestamp() where id = :id",
            id=asked.id,
        )
        return self._in_batch(batch, asked.id)

    def end(self, request_id: uuid.UUID, event: str, state: str) -> None:
        """Bring a request to a terminal state."""
        self.superuser.run(
            "update requests set state = :state, last_event = :event, state_seq = state_seq + 1,"
            " closed_at = clock_timestamp() where id = :id",
            state=state,
            event=event,
            id=request_id,
        )

    def ids(self, batch: str) -> list[uuid.UUID]:
        """The requests of a batch."""
        found = self.superuser.value(
            "select coalesce(array_agg(id), '{}') from requests where batch_key = :batch", batch=batch
        )
        assert isinstance(found, list)
        return found

    def opened(self, batch: str, *, ago: str = "0", idle_runs: int = 0, run_id: str | None = None) -> None:
        """A run opened the batch so long ago."""
        self.superuser.run(
            "insert into batches (workflow, batch_key, last_opened_at, idle_runs)"
            " values ('refunds', :batch, clock_timestamp() - cast(:ago as interval), :idle)"
            " on conflict (workflow, batch_key) do update"
            " set last_opened_at = excluded.last_opened_at, idle_runs = excluded.idle_runs",
            batch=batch,
            ago=ago,
            idle=idle_runs,
        )
        if run_id:
            self.superuser.run(
                "insert into batch_runs (run_id, workflow, batch_key, opened_at, beat_at) values (:run_id, 'refunds',"
                " :batch, clock_timestamp() - cast(:ago as interval), clock_timestamp() - cast(:ago as interval))",
                run_id=run_id,
                batch=batch,
                ago=ago,
            )

    def older(self, request_id: uuid.UUID, interval: str) -> None:
        """Make a request due since so much longer."""
        self.superuser.run(
            "update requests set next_eligible_at = next_eligible_at - cast(:ago as interval) where id = :id",
            ago=interval,
            id=request_id,
        )

    def add_run(self, batch: str, status: DagsterRunStatus, *, workflow: str = "refunds") -> str:
        """A run on a batch, in a status."""
        return self.add_job_run(f"{workflow}_process_batch", status, {BATCH: batch_tag(workflow, batch)})

    def add_job_run(self, job: str, status: DagsterRunStatus, tags: Mapping[str, str]) -> str:
        """A run of a job, in a status."""
        origin = RemoteJobOrigin(RemoteRepositoryOrigin(RegisteredCodeLocationOrigin("test"), "__repository__"), job)
        run = dg.DagsterRun(
            job_name=job, run_id=str(uuid.uuid4()), status=status, tags=dict(tags), remote_job_origin=origin
        )
        return self.instance.add_run(run).run_id

    def contents(self) -> dict[str, object]:
        """Every row of the tables that a sensor reads."""
        tables = ("requests", "batches", "batch_runs", "approval_resolutions", "audit_events", "effects", "outbox")
        return {
            table: self.superuser.value(f"select coalesce(json_agg(t)::text, '') from (select * from {table}) t")
            for table in tables
        }

    def run(self, run_id: str) -> dg.DagsterRun:
        """A run as the instance knows it now."""
        run = self.instance.get_run_by_id(run_id)
        assert run is not None
        return run

    def _in_batch(self, batch: str, request_id: uuid.UUID) -> uuid.UUID:
        self.superuser.run("update requests set batch_key = :batch where id = :id", batch=batch, id=request_id)
        self.superuser.run(
            "insert into batches (workflow, batch_key) values ('refunds', :batch) on conflict do nothing", batch=batch
        )
        return request_id


@pytest.fixture
def location(database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Location]:
    """A location with one workflow, `refunds`, whose store is the test's database."""
    monkeypatch.setenv("FAILSAFE_DATABASE_URL", database.url())
    with dg.DagsterInstance.ephemeral() as instance:
        yield Location(database, tmp_path, instance)
