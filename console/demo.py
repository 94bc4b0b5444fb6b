"""`failsafe demo`: a day of receipts through the whole machine, with a worker killed midway."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated

import typer

from console.demo_story import DemoStory
from console.demo_summary import summarise
from console.example_home import ExampleHome
from console.output import print_note, print_table

commands = typer.Typer()


@commands.command()
def demo(
    receipts: Annotated[
        Path | None,
        typer.Option(
            help="Labelled receipts (.jsonl.gz with `text` and `fields`) instead of the made-up sample.",
            exists=True,
            dir_okay=False,
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Another seed makes another sample.")] = 7,
) -> None:
    """Show receipts travel through Dagster: extracted, judged, paid, refused, or waiting for a person.

    Starts an embedded database, a provider on loopback and Dagster in a home of their own (.failsafe/demo), submits
    receipts, runs the job, kills its process with SIGKILL midway, runs it again, lets two reviewers decide, and lets
    Dagster's own sensor bring the rest home. Ends with a table and, last, one line of JSON; what really happened is
    counted in the provider's own ledger. Nothing is left running.
    """
    began = time.monotonic()
    home = ExampleHome("demo", lease_seconds=5)
    home.start(afresh=True)
    try:
        with home.groups() as children:
            story = DemoStory(home, children, print_note)
            story.submit(receipts, seed)
            story.run_and_kill()
            story.run_again()
            story.decide()
            story.let_the_sensor_finish()
            summary = summarise(home.database_url, story.provider_ledger(), kills=story.kills)
    finally:
        home.stop()
    print_table(["", "", "what it says"], summary.lines(), empty="")
    print(json.dumps(summary.figures() | {"seconds": round(time.monotonic() - began, 1)}))
    if summary.faults():
        raise typer.Exit(1)
