"""A terminal for tests: the real command line on a database of the test's own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from console.main import application
from tests.postgres import Database
from tests.store.requests import Superuser

ROOT = Path(__file__).resolve().parent.parent.parent
WORKFLOWS = "tests.store.workflow"


class Terminal:
    """Runs commands as `failsafe` would, in this process or, to be interrupted, in one of their own."""

    def __init__(self, database_url: str, home: Path) -> None:
        self.environment = {"FAILSAFE_DATABASE_URL": database_url, "FAILSAFE_WORKFLOWS": WORKFLOWS, "COLUMNS": "100"}
        self.home = home

    def run(self, *arguments: object, token: str = "", typed: str = "", **environment: str) -> Result:
        """Run a command to its end."""
        given = {**self.environment, "FAILSAFE_TOKEN": token, **environment}
        return CliRunner().invoke(application(), list(map(str, arguments)), input=typed, env=given)

    def said(self, *arguments: object, token: str = "") -> str:
        """The standard output of a command that succeeds."""
        result = self.run(*arguments, token=token)
        assert result.exit_code == 0, result.output
        return result.stdout

    def json(self, *arguments: object, token: str = "", exit_code: int = 0) -> Any:
        """What a command prints with `--json`."""
        result = self.run(*arguments, "--json", token=token)
        assert result.exit_code == exit_code, result.output
        return json.loads(result.stdout)

    def start(self, *arguments: object, token: str = "") -> subprocess.Popen[str]:
        """Start a command in a process of its own."""
        return subprocess.Popen(
            [sys.executable, "-c", "from console.main import main; main()", *map(str, arguments)],
            cwd=ROOT,
            env={**os.environ, **self.environment, "FAILSAFE_TOKEN": token},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


@pytest.fixture
def terminal(database: Database, tmp_path: Path) -> Terminal:
    """A terminal on this test's database."""
    return Terminal(database.url(), tmp_path)


@pytest.fixture
def superuser(database: Database) -> Superuser:
    """A writer that no duty binds, on this test's database."""
    return Superuser(database)
