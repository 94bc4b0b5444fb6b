"""What a tick says when the store cannot be read."""

from __future__ import annotations

import pytest

from policies.errors import SchemaMismatch, StoreUnavailable
from tests.postgres import Database
from tests.sensors.conftest import Location

SENSORS = ("approvals_landed", "work_due", "batches_settled")


@pytest.mark.parametrize("sensor", SENSORS)
def test_an_unreachable_database_fails_the_tick_with_its_remedy(
    location: Location, sensor: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tick is red and names the remedy; once the database is back, the next one finds everything."""
    location.released("2026-01-05")
    monkeypatch.setenv("FAILSAFE_DATABASE_URL", "postgresql+psycopg://nobody:hunter2@127.0.0.1:1/nowhere")
    with pytest.raises(StoreUnavailable, match="run `failsafe doctor`") as failed:
        location.tick(sensor)
    assert "hunter2" not in f"{failed.value} {failed.value.__cause__}"
    monkeypatch.setenv("FAILSAFE_DATABASE_URL", location.database.url())
    assert location.batches("approvals_landed") == ["2026-01-05"]


@pytest.mark.parametrize("sensor", SENSORS)
def test_an_unknown_schema_revision_fails_the_tick_with_its_remedy(location: Location, sensor: str) -> None:
    """Reading rows whose meaning this code does not know would start runs for the wrong reasons."""
    location.superuser.run("update schema_revision set version_num = '9999'")
    with pytest.raises(SchemaMismatch, match="run `failsafe db upgrade` or deploy the matching version"):
        location.tick(sensor)


def test_a_database_without_our_schema_fails_the_tick_with_its_remedy(
    location: Location, empty_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new installation says what to run."""
    monkeypatch.setenv("FAILSAFE_DATABASE_URL", empty_database.url())
    with pytest.raises(SchemaMismatch, match="revision none"):
        location.tick("work_due")


@pytest.mark.parametrize("sensor", SENSORS)
def test_a_tick_changes_nothing_in_the_store(location: Location, sensor: str) -> None:
    """A sensor decides when, never what: it reads as the auditor, in a read-only transaction."""
    location.queued("2026-01-05")
    before = location.contents()
    location.tick(sensor)
    assert location.contents() == before
