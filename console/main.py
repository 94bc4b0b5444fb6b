"""The command `failsafe`: one module a command group, each with its own `commands`; add a group by naming it here."""

from __future__ import annotations

import sys
from importlib import import_module
from io import TextIOWrapper
from typing import Any

import typer
from sqlalchemy.exc import ArgumentError
from typer.core import TyperGroup

from policies.errors import FailsafeError
from policies.redaction import visible

COMMAND_GROUPS = (
    "console.database",
    "console.doctor",
    "console.principals",
    "console.submit",
    "console.trial",
    "console.status",
    "console.deciding",
    "console.editing",
    "console.supply",
    "console.delegations",
    "console.cancel",
    "console.dead_letters",
    "console.unknown",
    "console.outbox",
    "console.pause",
    "console.ledger",
    "console.desk_command",
    "console.demo",
    "console.dev",
)
"""Modules in the order of their commands in `failsafe --help`."""


class _CleanGroup(TyperGroup):
    """Prints our errors as one line: a traceback tells a person nothing that the message does not."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except FailsafeError as error:
            problem = str(error)
        except ArgumentError:
            problem = "FAILSAFE_DATABASE_URL is no database URL; write postgresql+psycopg://user:password@host/database"
        print(f"failsafe: {visible('; '.join(problem.splitlines()))}", file=sys.stderr)
        raise typer.Exit(1)


def application() -> typer.Typer:
    """The command line with all its groups."""
    app = typer.Typer(
        cls=_CleanGroup,
        no_args_is_help=True,
        rich_markup_mode="markdown",  # so that a paragraph of help is wrapped to the terminal
        add_completion=False,
        pretty_exceptions_enable=False,  # it prints local variables, and one of them may be a token
        help="Submit requests, decide on what waits, and see what was done, by whom and why.\n\n"
        "The database is FAILSAFE_DATABASE_URL (default: an embedded server in ./.failsafe); who you are is the token "
        "in FAILSAFE_TOKEN, in the file named by --token-file, or asked for. Every command takes --json.",
    )
    for name in COMMAND_GROUPS:
        app.add_typer(import_module(name).commands)
    return app


def main() -> None:
    """The entry point of the console script."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # what a terminal cannot show is no reason for a traceback
    application()(prog_name="failsafe")
