"""`failsafe unknown`: effects of which nobody knows what became, and what a person found out."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from console.output import AsJson, print_json, print_lines, print_table
from console.store import store_url
from console.tokens import TokenFile, read_token
from resources.store.cases import unclear_effects
from resources.store.engine import Duty
from resources.store.late_undos import ask_undo
from resources.store.operator import resolve_unknown, sign_in

commands = typer.Typer()
group = typer.Typer(
    no_args_is_help=True,
    help="Effects that may or may not have happened, and late ones: that happened after they were settled otherwise. "
    "Uses the operator's login.",
)
commands.add_typer(group, name="unknown")


@group.command("list")
def list_all(
    workflow: Annotated[str | None, typer.Option(help="Only those of this workflow.")] = None, as_json: AsJson = False
) -> None:
    """List them, first sent first, with whom each waits for: a look-up by a run, its undo, or a person."""
    found = unclear_effects(store_url(Duty.OPERATOR), workflow)
    if as_json:
        print_json([asdict(one) for one in found])
        return
    print_table(
        ["key", "operation", "provider", "state", "waits for", "first sent", "last said"],
        [
            (
                one.key,
                one.operation_id,
                one.provider,
                one.state,
                one.waits_for,
                one.first_sent_at,
                one.provider_reference or one.error,
            )
            for one in found
        ],
        empty="it is known of every effect what became of it",
    )


@group.command()
def undo(
    key: Annotated[str, typer.Argument(help="The late effect's idempotency key.")],
    reason: Annotated[str, typer.Option(help="Why it should not stand; stands in the ledger.")],
    token_file: TokenFile = None,
    as_json: AsJson = False,
) -> None:
    """Have a late effect undone: the next run sends its undo, under the undo's own key, as often as it takes.

    Its request stays as it is. Once it is undone the effect is settled, and the case closed if nothing else is open; if
    the provider refuses the undo, the case says so and it is yours again. An effect that may stand needs no undo:
    resolve it as done.
    """
    url = store_url(Duty.OPERATOR)
    session = sign_in(url, read_token(token_file))
    request_id = ask_undo(url, session, key, reason)
    if as_json:
        print_json({"key": key, "request_id": request_id})
    else:
        print_lines(f"{key} will be undone by the next run of its batch; its request is {request_id}")


@group.command()
def resolve(
    key: Annotated[str, typer.Argument(help="The effect's idempotency key: what its provider knows it by.")],
    done: Annotated[bool, typer.Option("--done/--not-done", help="Whether it happened, and stands.")],
    evidence: Annotated[str, typer.Option(help="How you know; stands in the ledger.")],
    token_file: TokenFile = None,
    as_json: AsJson = False,
) -> None:
    """Say what became of an effect. Look at the provider first: your word is taken for it.

    Done: it counts and is never sent again. Not done: this key is never sent again; a redrive sends the action under a
    new key. A parked request stays parked until it is redriven or discarded.
    """
    url = store_url(Duty.OPERATOR)
    session = sign_in(url, read_token(token_file))
    request_id = resolve_unknown(url, session, key, done=done, evidence=evidence)
    if as_json:
        print_json({"key": key, "done": done, "request_id": request_id})
    else:
        print_lines(f"{key} is {'done' if done else 'not done'}, as {session.name} says; its request is {request_id}")
