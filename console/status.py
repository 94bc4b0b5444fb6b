"""`failsafe status`: where everything stands."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import Annotated

import typer

from console.output import AsJson, print_json, print_lines, print_table, shown
from console.store import store_url
from resources.store.engine import Duty
from resources.store.restores import RestoreStanding, restore_standing
from resources.store.status import WorkflowStatus, workflow_statuses

commands = typer.Typer()

BATCHES_SHOWN = 20
"""The latest batches of each workflow in the table; hourly ones are many."""


@commands.command()
def status(
    workflow: Annotated[str | None, typer.Option(help="Only this workflow.")] = None, as_json: AsJson = False
) -> None:
    """Count requests by state, in all and by batch, with open dead letters and the oldest request still waiting."""
    url = store_url(Duty.AUDITOR)
    found, restored = workflow_statuses(url, workflow), restore_standing(url)
    if as_json:
        states: Counter[str] = Counter()
        for one in found:
            states.update(one.states)
        workflows = [asdict(one) for one in found]
        print_json({"states": states, "workflows": workflows, "restored": asdict(restored) if restored else None})
        return
    print_table(
        ["workflow", "batch", "requests", "states"],
        [line for one in found for line in _lines(one)],
        empty="no requests yet; submit some: failsafe submit WORKFLOW FILE",
    )
    if restored is not None and restored.waiting:
        print_lines(after_restore(restored))
    for one in found:
        if len(one.batches) > BATCHES_SHOWN:
            print_lines(f"{one.workflow}: {len(one.batches) - BATCHES_SHOWN} earlier batches; --json has them")
        if one.oldest_waiting is not None:
            print_lines(f"{one.workflow}: the oldest waiting request was received {shown(one.oldest_waiting)}")
        if one.open_dead_letters:
            print_lines(f"{one.workflow}: {one.open_dead_letters} open dead letters; their batches stay red")


def after_restore(restored: RestoreStanding) -> str:
    """What is still to be found out since the last restore."""
    since = "not opened yet: the next run does" if restored.opened_at is None else f"since {shown(restored.opened_at)}"
    return (
        f"restored (epoch {restored.epoch}, {since}): {restored.waiting} open requests start nothing until it is "
        "found out what they did after the backup was taken"
    )


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
