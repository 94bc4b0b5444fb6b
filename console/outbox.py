"""`failsafe outbox`: events that a receiver would not take, and publishing them after all."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated
from uuid import UUID

import typer

from console.output import AsJson, print_json, print_lines, print_table
from console.store import store_url
from console.tokens import TokenFile, read_token
from resources.outbox.parked import parked_events, republish
from resources.store.engine import Duty
from resources.store.operator import sign_in

commands = typer.Typer()
group = typer.Typer(
    no_args_is_help=True,
    help="Events that the publisher gave up because their receiver would not take them, so that those after them went "
    "on. Mend the receiver, then republish. Uses the operator's login.",
)
commands.add_typer(group, name="outbox")

EventType = Annotated[str | None, typer.Option("--type", help="Only events of this type, such as effect.done.")]


@group.command("list")
def list_all(event_type: EventType = None, as_json: AsJson = False) -> None:
    """List parked events, the first first, with what the receiver said last."""
    found = parked_events(store_url(Duty.OPERATOR), event_type)
    if as_json:
        print_json([asdict(one) for one in found])
        return
    print_table(
        ["event", "type", "of", "sequence", "parked", "reason"],
        [(one.id, one.type, one.aggregate, one.sequence, one.parked_at, one.reason) for one in found],
        empty="no parked events",
    )


@group.command("republish")
def republish_all(
    ids: Annotated[list[UUID] | None, typer.Argument(metavar="EVENT", help="Event ids; or use --all.")] = None,
    *,
    reason: Annotated[str, typer.Option(help="Why; stands in the ledger.")],
    every: Annotated[
        bool, typer.Option("--all", help="Every parked event, or with --type every one of that type.")
    ] = False,
    event_type: EventType = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do it. Without this, only what would happen is said.")] = False,
    token_file: TokenFile = None,
    as_json: AsJson = False,
) -> None:
    """Have parked events published after all, with all their attempts anew.

    They arrive after later ones of the same request, under the same id and sequence as ever: a receiver that keeps to
    the order by sequence puts them in their place, and one that took an event before knows it by its id.
    """
    if bool(ids) == every:
        raise typer.BadParameter("name events, or say --all, one or the other")
    url = store_url(Duty.OPERATOR)
    chosen = ids or [one.id for one in parked_events(url, event_type)]
    found = republish(url, sign_in(url, read_token(token_file)), chosen, reason, dry_run=not yes)
    going = [one for one in found if one.obstacle is None]
    if as_json:
        print_json({"dry_run": not yes, "events": [asdict(one) for one in found]})
    else:
        print_table(
            ["event", "republished" if yes else "would be republished"],
            [(one.id, f"no: {one.obstacle}" if one.obstacle else "yes") for one in found],
            empty="no parked events",
        )
        print_lines(f"{len(going)} of {len(found)} go out" if yes else "nothing was changed; say --yes to do it")
    if yes and len(going) < len(found):
        raise typer.Exit(1)
