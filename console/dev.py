"""`failsafe dev`: Dagster's web page with the example, in a home that is kept."""

from __future__ import annotations

import sys
from datetime import UTC, datetime

import typer

from console.example_home import REVIEWERS, ExampleHome
from console.output import print_lines, print_note

commands = typer.Typer()


@commands.command()
def dev(
    port: int = typer.Option(3000, help="Port of the Dagster web page."),
    desk_port: int = typer.Option(8600, help="Port of the review desk and the intake API."),
) -> None:
    """Run Dagster with the example until Ctrl-C: web page, daemon, review desk, sandbox provider, embedded database.

    Its home is .failsafe/dev, kept for the next time. Materialise the asset `receipts` to hand receipts in; the sensors
    start the runs. Sign in at the desk with a token of the files printed here, or vote from another terminal.
    """
    home = ExampleHome("dev", lease_seconds=30)
    home.start(afresh=False)
    for name, roles in REVIEWERS:
        home.principal(name, "human", roles)
    home.principal("Otto (operator)", "human", ["operator"])
    dagster_url, desk_url = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{desk_port}"
    home.environment |= {"FAILSAFE_DAGSTER_URL": dagster_url, "FAILSAFE_DESK_URL": desk_url}
    try:
        with home.groups() as children:
            home.start_provider(children)
            command = [sys.executable, "-m", "dagster", "dev", "-m", "examples.expenses.definitions", "-p", str(port)]
            children.start("dagster", [*command, "-h", "127.0.0.1"])
            run = "from console.main import main; main()"
            children.start("desk", [sys.executable, "-c", run, "desk", "--port", str(desk_port)])
            print_lines(
                f"Dagster:   {dagster_url} (logs in {home.folder / 'logs'})",
                f"desk:      {desk_url} (tokens: tess, finn and otto.token in {home.folder})",
                f"database:  export FAILSAFE_DATABASE_URL='{home.database_url}'",
                f"reviewer:  failsafe inbox --token-file {home.folder / 'tess.token'}",
                "Ctrl-C ends everything; the home is kept.",
            )
            ended = children.wait_for_an_end()
            print_note(
                f"{ended} ended at {datetime.now(UTC):%H:%M:%S} UTC, so everything does; the last lines of "
                f"{home.folder / 'logs' / ended}.log say why"
            )
            raise typer.Exit(1)
    except KeyboardInterrupt:
        print_note("ended; the home is kept")
    finally:
        home.stop()
