"""`failsafe status`: where everything stands."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import Annotated

import typer

from console.output import AsJson, print_json, print_lines, print_table, shown
from console.store import store_url
from resources.store.engine import Duty
from resources.store.status import WorkflowStatus, workflow_statuses

commands = typer.Typer()

BATCHES_SHOWN = 20
"""The latest batches of each workflow in the table; hourly ones are many."""


@commands.command()
def status(
    workflow: Annotated[str | None, typer.Option(help="Only this workflow.")] = None, as_json: AsJson = False
) -> None:
    """Count requests by state, in all and by batch, with open dead letters and the oldest request still waiting."""
    found = workflow_statuses(store_url(Duty.AUDITOR), workflow)
    if as_json:
        states: Counter[str] = Counter()
        for one in found:
            states.update(one.states)
        print_json({"states": states, "workflows": [asdict(one) for one in found]})
        return
    print_table(
        ["workflow", "batch", "requests", "states"],
        [line for one in found for line in _lines(one)],
        empty="no requests yet; submit some: failsafe submit WORKFLOW FILE",
    )
    for one in found:
        if len(one.batches) > BATCHES_SHOWN:
            print_lines(f"{one.workflow}: {len(one.batches) - BATCHES_SHOWN} earlier batches; --json has them")
        if one.oldest_waiting is not None:
            print_lines(f"{one.workflow}: the oldest waiting request was received {shown(one.oldest_waiting)}")
        if one.open_dead_letters:
            print_lines(f"{one.workflow}: {one.open_dead_letters} open dead letters; their batches stay red")


def _lines(one: WorkflowStatus) -> list[tuple[str, str, int, str]]:
    batches = [("", batch, counts) for batch, counts in sorted(one.batches.items())[-BATCHES_SHOWN:]]
    return [
        (
            workflow,
            batch,
            sum(counts.values()),
            ", ".join(f"{count} {state}" for state, count in sorted(counts.items())),
        )
        for workflow, batch, counts in [(one.workflow, "all", one.states), *batches]
    ]
