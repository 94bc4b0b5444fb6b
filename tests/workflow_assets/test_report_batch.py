"""The assets of a settled batch: what they say, what their checks find, when they are made anew."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import sqlalchemy as sa
from dagster import AssetKey, DagsterInstance

from tests.ops import toy
from tests.postgres import Database
from workflow_assets.definitions import definitions

LEDGER = AssetKey(["refunds", "audit_ledger"])
METRICS = AssetKey(["refunds", "evaluation_metrics"])
REQUESTS = AssetKey(["refunds", "request_batch"])


class Batch:
    """A batch that the workflow's own job has advanced, and the jobs of its location."""

    def __init__(self, database: Database, folder: Path, instance: DagsterInstance) -> None:
        self.url = database.url()
        self.instance = instance
        self.till = toy.new_ledger(folder)
        self.workflow = toy.toy_workflow(folder, self.till)
        self.definitions = definitions(self.workflow)
        token = toy.principal(self.url, "shop", ["clerk"])
        self.key = toy.queue(
            self.url,
            self.workflow,
            token,
            {
                "small": {"order_id": "A1", "text": "TOTAL 20.00 EUR"},
                "saga": {"order_id": "A2", "text": "TOTAL 30.00 EUR", "say": "saga"},
                "large": {"order_id": "A3", "text": "TOTAL 80.00 EUR"},
                "huge": {"order_id": "A4", "text": "TOTAL 800.00 EUR"},
                "gone": {"order_id": "gone", "text": "TOTAL 20.00 EUR"},
                "unsure": {"order_id": "A5", "text": "TOTAL 20.00 EUR", "say": "abstain"},
            },
        )
        self.run("refunds_process_batch")

    def run(self, job: str, *, raise_on_error: bool = True) -> dg.ExecuteInProcessResult:
        """Run a job of the location on this batch."""
        return self.definitions.resolve_job_def(job).execute_in_process(
            partition_key=self.key, instance=self.instance, raise_on_error=raise_on_error
        )

    def report(self) -> None:
        """Make the assets."""
        assert self.run("refunds_report_batch").success

    def metadata(self, asset: AssetKey) -> Mapping[str, Any]:
        """What the latest materialization of an asset says."""
        event = self.instance.get_latest_materialization_event(asset)
        assert event is not None
        assert event.asset_materialization is not None
        assert event.asset_materialization.partition == self.key
        return {name: plain(value) for name, value in event.asset_materialization.metadata.items()}

    def check(self, asset: AssetKey, name: str) -> dg.AssetCheckEvaluation:
        """The latest evaluation of a check on this batch."""
        (record,) = self.instance.event_log_storage.get_asset_check_execution_history(
            dg.AssetCheckKey(asset, name), limit=1
        )
        assert record.partition == self.key
        assert record.event is not None
        assert record.event.dagster_event is not None
        return record.event.dagster_event.asset_check_evaluation_data


@pytest.fixture
def batch(database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Batch]:
    """A batch of six requests, advanced once."""
    monkeypatch.setenv("FAILSAFE_DATABASE_URL", database.url())
    with DagsterInstance.ephemeral() as instance:
        yield Batch(database, tmp_path, instance)


def plain(value: dg.MetadataValue[Any]) -> Any:
    """What a metadata value holds; of a table, its rows."""
    return [record.data for record in value.records] if isinstance(value, dg.TableMetadataValue) else value.value


def tamper(database: Database, *statements: str) -> None:
    """Change what nobody may change, as somebody with the server's superuser could."""
    engine = sa.create_engine(database.url(), poolclass=sa.NullPool)
    with engine.begin() as connection:
        connection.exec_driver_sql("set local session_replication_role = replica")
        connection.exec_driver_sql("set local search_path = failsafe")
        for statement in statements:
            connection.exec_driver_sql(statement)


def test_the_ledger_counts_and_verifies_every_event(batch: Batch) -> None:
    """One chain a request; events by type; the check is green."""
    batch.report()
    said = batch.metadata(LEDGER)
    assert (said["streams"], said["damaged_streams"]) == (6, 0)
    by_type = {record["type"]: record["events"] for record in said["events_by_type"]}
    assert by_type["request.received"] == 6
    assert by_type["effect.done"] == 4
    assert said["events"] == sum(by_type.values())
    assert batch.check(LEDGER, "chain_intact").passed


def test_metrics_are_by_tier(batch: Batch) -> None:
    """What was automatic, reviewed, refused, how many effects there were and how long it took."""
    batch.report()
    said = batch.metadata(METRICS)
    rows = {record["tier"]: record for record in said["by_tier"]}
    names = ("requests", "automatic", "reviewed", "refused", "effects")
    assert {tier: [row[name] for name in names] for tier, row in rows.items()} == {
        "low": [2, 2, 0, 0, 4],
        "medium": [1, 0, 1, 0, 0],
        "critical": [1, 0, 0, 1, 0],
        "none": [2, 0, 0, 1, 0],
    }
    assert 0 < rows["low"]["latency_median_seconds"] <= rows["low"]["latency_p95_seconds"]
    assert rows["medium"]["latency_median_seconds"] is None
    assert {name: said[name] for name in ("requests", "effects", "open", "parked")} == {
        "requests": 6,
        "effects": 4,
        "open": 1,
        "parked": 1,
    }
    assert batch.check(METRICS, "no_duplicate_effects").passed
    assert batch.check(METRICS, "no_effect_without_authority").passed


@pytest.mark.parametrize(
    ("statement", "damage"),
    [
        ("update audit_events set payload = '{}' where type = 'effect.done' and stream = {one}", "edit"),
        ("delete from audit_events where seq = 2 and stream = {one}", "gap"),
        ("delete from audit_events where stream = {one} and type = 'request.concluded'", "cut_tail"),
        ("delete from audit_heads where stream = {one}", "missing_head"),
    ],
)
def test_a_damaged_chain_is_found(batch: Batch, database: Database, statement: str, damage: str) -> None:
    """The check is red, names the stream and what is wrong with it."""
    one = "(select min(stream) from audit_events where type = 'effect.done')"
    tamper(database, statement.replace("{one}", one))
    batch.report()
    found = batch.check(LEDGER, "chain_intact")
    assert not found.passed
    (record,) = plain(found.metadata["damaged"])
    assert record["damage"] == damage
    assert batch.metadata(LEDGER)["damaged_streams"] == 1


def test_a_stream_that_is_gone_is_found(batch: Batch, database: Database) -> None:
    """Events and head of a request deleted together leave nothing to verify, which is itself a damage."""
    one = "'request:' || (select min(id::text) from requests)"
    tamper(database, f"delete from audit_events where stream = {one}", f"delete from audit_heads where stream = {one}")
    batch.report()
    (record,) = plain(batch.check(LEDGER, "chain_intact").metadata["damaged"])
    assert record["damage"] == "missing_stream"


def test_an_effect_that_happened_twice_is_found(batch: Batch, database: Database) -> None:
    """A second done effect of one action under another key."""
    tamper(
        database,
        "create temporary table again on commit drop as select * from effects where action_type = 'stock.reserve'",
        "update again set idempotency_key = idempotency_key || '-again', intent = intent + 1",
        "insert into effects select * from again",
    )
    batch.report()
    found = batch.check(METRICS, "no_duplicate_effects")
    assert not found.passed
    assert len(plain(found.metadata["idempotency_keys"])) == 2


@pytest.mark.parametrize(
    "statement",
    [
        "update assessments set mode = 'shadow' where tier = 'low'",
        "delete from assessments where tier = 'low'",
        "update assessments set decision = 'refuse' where tier = 'low'",
    ],
)
def test_an_effect_that_nothing_allowed_is_found(batch: Batch, database: Database, statement: str) -> None:
    """The check looks at what stands in the store, not at what the code meant to do."""
    assert batch.run("refunds_report_batch").success
    assert batch.check(METRICS, "no_effect_without_authority").passed
    tamper(database, statement)
    batch.report()
    found = batch.check(METRICS, "no_effect_without_authority")
    assert not found.passed
    assert len(plain(found.metadata["idempotency_keys"])) == 4


def test_a_report_notes_what_it_was_made_from(batch: Batch, database: Database) -> None:
    """So that the sensor asks for another one exactly when something changed."""
    batch.report()
    noted = sa.text(
        "select reported_at is not null, reported_unfinished,"
        " reported_seq = (select sum(state_seq) from failsafe.requests) from failsafe.batches"
    )
    with sa.create_engine(database.url(), poolclass=sa.NullPool).connect() as connection:
        assert tuple(connection.execute(noted).one()) == (True, 2, True)


def test_an_empty_batch_has_a_report_too(batch: Batch) -> None:
    """A person may ask for it; it says that there was nothing."""
    batch.key = "2026-01-02"
    batch.report()
    assert batch.metadata(METRICS)["requests"] == 0
    assert batch.metadata(LEDGER)["streams"] == 0
    assert batch.check(LEDGER, "chain_intact").passed


def test_a_run_shows_on_the_asset_of_the_requests_how_the_batch_stands(batch: Batch) -> None:
    """An observation with counts by state, and the check that alerts belong on, at the end of every run."""
    event = batch.instance.fetch_observations(REQUESTS, limit=1).records[0].asset_observation
    assert event is not None
    assert event.partition == batch.key
    assert event.metadata["requests_completed"].value == 2
    assert batch.check(REQUESTS, "no_open_cases").passed


def test_a_run_and_the_assets_of_its_batch_link_to_the_desk(batch: Batch, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the deployment says where that is: to what waits of this workflow. Otherwise there is no link."""

    def links() -> set[object]:
        run = batch.run("refunds_process_batch")
        (closed,) = [
            event.step_output_data.metadata
            for event in run.all_events
            if event.step_key == "close_batch" and event.event_type is dg.DagsterEventType.STEP_OUTPUT
        ]
        batch.report()
        observed = batch.instance.fetch_observations(REQUESTS, limit=1).records[0].asset_observation
        assert observed is not None
        said = [{name: plain(value) for name, value in one.items()} for one in (closed, observed.metadata)]
        return {one.get("review_desk") for one in (*said, batch.metadata(LEDGER), batch.metadata(METRICS))}

    monkeypatch.setenv("FAILSAFE_DESK_URL", "https://desk.example/")
    assert links() == {"https://desk.example/inbox?workflow=refunds"}
    monkeypatch.delenv("FAILSAFE_DESK_URL")
    assert links() == {None}


def test_an_open_dead_letter_fails_the_check_and_the_run(batch: Batch, database: Database) -> None:
    """The partition is red until somebody clears it; the check can be asked for at any time."""
    tamper(
        database,
        "insert into dead_letters (request_id, step, failure, trace_id) select id, 'extract', 'gave up', trace_id"
        " from requests where state = 'needs_review'",
    )
    result = batch.run("refunds_process_batch", raise_on_error=False)
    assert not result.success
    assert not batch.check(REQUESTS, "no_open_cases").passed
    tamper(
        database,
        "update dead_letters set closed_at = clock_timestamp(), resolution = 'dealt with',"
        " closed_by = (select min(id::text)::uuid from principals)",
    )
    every_asset = batch.definitions.get_repository_def().get_implicit_global_asset_job_def()
    asked = every_asset.get_subset(asset_check_selection={dg.AssetCheckKey(REQUESTS, "no_open_cases")})
    assert asked.execute_in_process(partition_key=batch.key, instance=batch.instance).success
    assert batch.check(REQUESTS, "no_open_cases").passed


def test_a_report_looks_at_the_cases_again(batch: Batch, database: Database) -> None:
    """A case that was discarded after the last run no longer shows once the report is made anew."""
    tamper(
        database,
        "insert into dead_letters (request_id, step, failure, trace_id) select id, 'extract', 'gave up', trace_id"
        " from requests where state = 'needs_review'",
    )
    batch.report()
    assert not batch.check(REQUESTS, "no_open_cases").passed
    tamper(database, "delete from dead_letters")
    batch.report()
    assert batch.check(REQUESTS, "no_open_cases").passed


@pytest.mark.parametrize("job", ["refunds_process_batch", "refunds_report_batch"])
def test_a_question_that_waits_too_long_is_a_warning(batch: Batch, database: Database, job: str) -> None:
    """It has used up more than half of its time; the run itself stays green, and says how old the oldest is."""
    assert batch.check(REQUESTS, "approvals_answered").passed
    earlier = "opened_at = opened_at - interval '40 hours', expires_at = expires_at - interval '40 hours'"
    tamper(database, f"update approval_requests set {earlier}")
    assert batch.run(job).success
    found = batch.check(REQUESTS, "approvals_answered")
    assert (found.passed, found.severity) == (False, dg.AssetCheckSeverity.WARN)
    assert {name: plain(value) for name, value in found.metadata.items()} == {
        "waiting": 1,
        "late": 1,
        "oldest_waiting_hours": 40,
    }
    tamper(database, "update requests set state = 'rejected', closed_at = now() where approval_id is not null")
    assert batch.run(job).success
    assert batch.check(REQUESTS, "approvals_answered").passed
