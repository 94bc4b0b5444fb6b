"""`failsafe db`: from an empty database to this version, any number of times."""

from __future__ import annotations

from pathlib import Path

from tests.console.conftest import Terminal
from tests.postgres import Database
from tests.store.requests import Superuser


def test_an_empty_database_becomes_ours(empty_database: Database, tmp_path: Path) -> None:
    """`init` makes the schema, says so, and is `upgrade` afterwards; `status` tells both states apart."""
    terminal = Terminal(empty_database.url(), tmp_path)
    assert terminal.json("db", "status", exit_code=1)["revision"] is None
    refused = terminal.run("db", "upgrade")
    assert (refused.exit_code, "failsafe db init" in refused.stderr) == (1, True)
    nothing = terminal.run("status")
    assert (nothing.exit_code, nothing.stderr.count("\n")) == (1, 1)
    made = terminal.json("db", "init")
    assert made["before"] is None
    assert terminal.json("db", "status") == {"revision": made["revision"], "known": True, "wanted": made["revision"]}
    assert terminal.json("db", "init") == terminal.json("db", "upgrade")
    assert terminal.json("status") == {"states": {}, "workflows": [], "restored": None}


def test_a_schema_of_another_version_is_left_alone(terminal: Terminal, superuser: Superuser) -> None:
    """Every command that touches rows stops, and status says what to do."""
    superuser.run("update schema_revision set version_num = '9999'")
    assert terminal.json("db", "status", exit_code=1)["known"] is False
    for command in (["status"], ["inbox"], ["show", "x"], ["ledger", "x"], ["principals", "list"]):
        result = terminal.run(*command)
        assert result.exit_code == 1
        assert "9999" in result.stderr


def test_the_admin_login_is_its_own(database: Database, tmp_path: Path) -> None:
    """FAILSAFE_ADMIN_URL is used to upgrade, so that the everyday login need not be able to."""
    terminal = Terminal(database.url("failsafe_worker"), tmp_path)
    assert terminal.run("db", "upgrade").exit_code == 1
    assert terminal.run("db", "upgrade", FAILSAFE_ADMIN_URL=database.url()).exit_code == 0
