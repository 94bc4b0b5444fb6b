"""The command line as a whole: it teaches, it never shows a traceback, it never shows a secret."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import typer.main

from console.main import application
from tests.console.conftest import Terminal


def commands(command: Any = None, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Every command with the groups it stands in."""
    command = typer.main.get_command(application()) if command is None else command
    children = getattr(command, "commands", None)
    if children is None:
        return [path]
    return [found for name, child in children.items() for found in commands(child, (*path, name))]


@pytest.mark.parametrize("path", commands(), ids=" ".join)
def test_every_command_teaches(path: tuple[str, ...], tmp_path: Path) -> None:
    """`--help` works without a database and says more than the name; each argument and option has its words."""
    result = Terminal("postgresql+psycopg://nowhere.invalid/x", tmp_path).run(*path, "--help")
    assert result.exit_code == 0
    assert len(result.stdout.split()) > 30
    found: Any = typer.main.get_command(application())
    for name in path:
        found = found.commands[name]
    assert found.help
    assert [one.name for one in found.params if not getattr(one, "help", None)] == []


SERVERS = {("demo",), ("dev",), ("desk",)}
"""What runs until it is stopped has nothing to print for programs, but for the demo's last line."""


@pytest.mark.parametrize("path", [path for path in commands() if path not in SERVERS], ids=" ".join)
def test_every_command_has_a_form_for_programs(path: tuple[str, ...]) -> None:
    """`--json` stands beside the human form everywhere."""
    found: Any = typer.main.get_command(application())
    for name in path:
        found = found.commands[name]
    assert "--json" in {option for one in found.params for option in one.opts}


def test_commands_stand_where_they_are_looked_for() -> None:
    """The names that the documents use exist."""
    wanted = {
        ("db", "init"),
        ("db", "upgrade"),
        ("db", "status"),
        ("principals", "add"),
        ("principals", "list"),
        ("principals", "disable"),
        ("principals", "set-roles"),
        *((name,) for name in ("doctor", "submit", "try", "status", "inbox", "show", "approve", "deny", "ledger")),
    }
    assert wanted <= set(commands())


@pytest.mark.parametrize(
    "arguments",
    [("status",), ("inbox",), ("show", "x"), ("ledger", "x"), ("principals", "list"), ("db", "status"), ("db", "init")],
)
def test_a_database_that_is_not_there_is_one_line(arguments: tuple[str, ...], tmp_path: Path) -> None:
    """One line on standard error says what to do; exit code 1; no traceback, no password."""
    url = "postgresql+psycopg://someone:the-password@127.0.0.1:1/none"
    result = Terminal(url, tmp_path).run(*arguments)
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    assert "failsafe doctor" in result.stderr
    assert "the-password" not in result.output


@pytest.mark.parametrize("url", ["no url", "sqlite+nothing://x"])
def test_a_wrong_url_is_one_line(url: str, tmp_path: Path) -> None:
    """A URL that cannot even be read is named by its variable."""
    result = Terminal(url, tmp_path).run("status")
    assert result.exit_code == 1
    assert result.stderr.startswith("failsafe: FAILSAFE_DATABASE_URL")


@pytest.mark.parametrize("arguments", [("submit",), ("show",), ("deny", "x"), ("nonsense",), ("status", "--nonsense")])
def test_a_wrong_command_is_exit_code_2(terminal: Terminal, arguments: tuple[str, ...]) -> None:
    """Usage errors are told apart from refusals."""
    assert terminal.run(*arguments).exit_code == 2


def test_a_token_is_never_an_argument() -> None:
    """No command has an option or argument for a token itself: it would stand in the shell's history and in `ps`."""
    for path in commands():
        found: Any = typer.main.get_command(application())
        for name in path:
            found = found.commands[name]
        assert "token" not in {one.name for one in found.params}


def test_a_token_file_is_read(terminal: Terminal, tmp_path: Path) -> None:
    """`--token-file` names it; a file that is not there, or no token at all, is said plainly."""
    missing = terminal.run("deny", "x", "--reason", "r", "--token-file", tmp_path / "none")
    assert (missing.exit_code, missing.stderr) == (
        1,
        f"failsafe: no token can be read from {tmp_path / 'none'}: FileNotFoundError\n",
    )
    kept = tmp_path / "token"
    kept.write_text("fst_unknown\n")
    unknown = terminal.run("deny", "x", "--reason", "r", "--token-file", kept)
    assert (unknown.exit_code, unknown.stderr) == (1, "failsafe: unknown or disabled credential\n")
    none = terminal.run("deny", "x", "--reason", "r")
    assert (none.exit_code, none.stderr) == (
        1,
        "failsafe: no token: set FAILSAFE_TOKEN or name a file with --token-file\n",
    )
