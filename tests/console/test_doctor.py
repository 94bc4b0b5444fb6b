"""`failsafe doctor` tells what is missing from what is merely advised."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Connection, NullPool, create_engine, text

from tests.console.conftest import Terminal
from tests.postgres import Database
from tests.store.requests import Superuser


@pytest.fixture(autouse=True)
def durable(database: Database) -> Iterator[None]:
    """The server as it would be in earnest; for the other tests it spares the disk."""
    engine = create_engine(database.url(), isolation_level="AUTOCOMMIT", poolclass=NullPool)
    with engine.connect() as connection:
        for statement in ("alter system set fsync = on", "select pg_reload_conf()"):
            connection.execute(text(statement))
        _wait_for(connection, "on")
        yield
        for statement in ("alter system set fsync = off", "select pg_reload_conf()"):
            connection.execute(text(statement))


def _wait_for(connection: Connection, fsync: str) -> None:
    """A reload reaches each session a moment later."""
    for _ in range(100):
        if connection.scalar(text("show fsync")) == fsync:
            return
        time.sleep(0.05)


def levels(terminal: Terminal, exit_code: int = 0) -> dict[str, str]:
    """The worst level of each check by its name."""
    found: dict[str, str] = {}
    for check in terminal.json("doctor", exit_code=exit_code)["checks"]:
        order = ["ok", "advised", "missing"]
        found[check["name"]] = max(found.get(check["name"], "ok"), check["level"], key=order.index)
    return found


def test_a_complete_database_lacks_nothing(terminal: Terminal) -> None:
    """Everything that must be is ok; that one login does all duties is merely advised against."""
    found = levels(terminal)
    assert "missing" not in found.values()
    assert found["schema"] == found["server"] == found["fsync"] == found["clock"] == found["server log"] == "ok"
    assert found["duties"] == "advised"
    assert "advised  duties" in terminal.said("doctor")


def test_duties_with_their_own_logins_are_ok(terminal: Terminal, database: Database) -> None:
    """With a URL for each duty nothing is shared any more; one that cannot sign in is missing."""
    for duty in ("INTAKE", "WORKER", "REVIEWER", "OPERATOR", "AUDITOR"):
        terminal.environment[f"FAILSAFE_{duty}_URL"] = database.url(f"failsafe_{duty.lower()}")
    assert levels(terminal)["duties"] == "ok"
    terminal.environment["FAILSAFE_REVIEWER_URL"] = "postgresql+psycopg://failsafe_reviewer:x@127.0.0.1:1/none"
    assert levels(terminal, exit_code=1)["roles"] == "missing"


def test_a_login_of_one_duty_is_told_what_it_cannot_do(terminal: Terminal, database: Database) -> None:
    """A reviewer's own machine needs no other role, so the others are advice."""
    terminal.environment["FAILSAFE_DATABASE_URL"] = database.url("failsafe_reviewer")
    assert levels(terminal)["roles"] == "advised"


def test_a_database_without_schema_is_missing_it(empty_database: Database, tmp_path: Path) -> None:
    """The remedy is named."""
    result = Terminal(empty_database.url(), tmp_path).run("doctor")
    assert result.exit_code == 1
    assert "missing  schema: there is none; run `failsafe db init`" in result.stdout


def test_an_unknown_schema_is_missing(terminal: Terminal, superuser: Superuser) -> None:
    """Code and database of different versions do not go together."""
    superuser.run("update schema_revision set version_num = '9999'")
    assert levels(terminal, exit_code=1)["schema"] == "missing"


def test_no_database_is_missing(tmp_path: Path) -> None:
    """It is said in one line and without the password."""
    result = Terminal("postgresql+psycopg://me:the-password@127.0.0.1:1/none", tmp_path).run("doctor")
    assert result.exit_code == 1
    assert "missing  database: the database did not answer" in result.stdout
    assert "the-password" not in result.output


def test_a_database_that_forgets_is_missing_durability(terminal: Terminal, superuser: Superuser) -> None:
    """With synchronous_commit off an acknowledged start of an effect can vanish in a crash."""
    superuser.run(f'alter database "{superuser.engine.url.database}" set synchronous_commit = off')
    assert levels(terminal, exit_code=1)["synchronous_commit"] == "missing"


GOOD = """
storage: {postgres: {postgres_url: "postgresql+psycopg2://x"}}
run_coordinator: {config: {dequeue_use_threads: true}}
run_monitoring: {enabled: true}
"""


@pytest.mark.parametrize(
    ("settings", "level"),
    [
        (GOOD, "ok"),
        (GOOD.replace("+psycopg2", ""), "missing"),
        (GOOD.replace("+psycopg2", "+psycopg"), "missing"),
        (GOOD.replace('postgres_url: "postgresql+psycopg2://x"', "postgres_db: {hostname: x}"), "missing"),
        (GOOD.replace('postgres_url: "postgresql+psycopg2://x"', "postgres_db: {scheme: postgresql+psycopg2}"), "ok"),
        (GOOD.replace('"postgresql+psycopg2://x"', "{env: GOOD_URL}"), "ok"),
        (GOOD.replace('"postgresql+psycopg2://x"', "{env: BARE_URL}"), "missing"),
        (GOOD.replace('"postgresql+psycopg2://x"', "{env: UNSET_URL}"), "advised"),
        (GOOD.replace("dequeue_use_threads: true", ""), "advised"),
        (GOOD.replace("enabled: true", "enabled: false"), "advised"),
        ("run_monitoring: {enabled: true}", "advised"),
        ("", "advised"),
        ("[", "missing"),
        ("- a list", "missing"),
    ],
)
def test_dagsters_own_settings(terminal: Terminal, tmp_path: Path, settings: str, level: str) -> None:
    """A storage URL that breaks on this SQLAlchemy is missing; what only costs time is advised."""
    (tmp_path / "dagster.yaml").write_text(settings)
    terminal.environment |= {
        "DAGSTER_HOME": str(tmp_path),
        "GOOD_URL": "postgresql+psycopg2://x",
        "BARE_URL": "postgresql://x",
    }
    assert levels(terminal, exit_code=int(level == "missing"))["dagster.yaml"] == level


def test_our_own_dagster_yaml_is_ok(terminal: Terminal, tmp_path: Path) -> None:
    """The file that we ship follows the advice that we give."""
    shipped = Path(__file__).resolve().parent.parent.parent / "dagster.yaml"
    (tmp_path / "dagster.yaml").write_text(shipped.read_text())
    terminal.environment |= {"DAGSTER_HOME": str(tmp_path), "DAGSTER_PG_URL": "postgresql+psycopg2://x"}
    assert levels(terminal)["dagster.yaml"] == "ok"
