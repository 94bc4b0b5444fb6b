"""`failsafe doctor`: what is missing and what is merely advised."""

from __future__ import annotations

from dataclasses import asdict

import typer

from console.dagster_checks import dagster_checks
from console.database_checks import database_checks
from console.output import AsJson, print_json, print_lines

commands = typer.Typer()


@commands.command()
def doctor(as_json: AsJson = False) -> None:
    """Check the database, the roles and the Dagster instance; nothing is changed in them.

    "missing" must be mended before work can be trusted to this deployment: exit code 1. "advised" says what would make
    it better and what it costs to leave it: exit code 0.
    """
    checks = [*database_checks(), *dagster_checks()]
    missing = any(check.level == "missing" for check in checks)
    if as_json:
        print_json({"ok": not missing, "checks": [asdict(check) for check in checks]})
    else:
        print_lines(*(f"{check.level:8} {check.name}: {check.says}" for check in checks))
    if missing:
        raise typer.Exit(1)
