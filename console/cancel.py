"""`failsafe cancel` and `failsafe resolve-compensation`: deciding against a request, and what could not be undone."""

from __future__ import annotations

from typing import Annotated

import typer

from console.output import AsJson, print_json, print_lines
from console.store import store_url
from console.tokens import TokenFile, read_token
from resources.store.cases import request_ids
from resources.store.engine import Duty
from resources.store.operator import Cancelled, resolve_compensation, sign_in
from resources.store.operator import cancel as cancel_request

commands = typer.Typer()

Name = Annotated[str, typer.Argument(metavar="REQUEST", help="A request id or operation_id.")]

_SAID = {
    Cancelled.CANCELLED: "cancelled: nothing was done and nothing will be",
    Cancelled.COMPENSATING: "being undone: part of it was done; runs undo that, last first",
    Cancelled.UNCERTAIN: "noted: an effect is under way and no other starts; once its outcome is known, what was done "
    "is undone; if that cannot be undone, the request goes on to its end",
}


@commands.command()
def cancel(
    name: Name,
    reason: Annotated[str, typer.Option(help="Why; stands in the ledger.")],
    token_file: TokenFile = None,
    as_json: AsJson = False,
) -> None:
    """Decide against a request, as who submitted it or as an operator.

    Before any effect it ends; what was done is undone; after something that cannot be undone it is too late.
    """
    url = store_url(Duty.OPERATOR)
    session = sign_in(url, read_token(token_file))
    [request_id] = request_ids(url, [name])
    came_to = cancel_request(url, session, request_id, reason)
    if as_json:
        print_json({"request_id": request_id, "came_to": came_to})
    else:
        print_lines(f"{name}: {_SAID[came_to]}")


@commands.command("resolve-compensation")
def resolve(
    name: Name,
    evidence: Annotated[str, typer.Option(help="What you did and how you know; stands in the ledger.")],
    token_file: TokenFile = None,
    as_json: AsJson = False,
) -> None:
    """Say that what a failed compensation left was restored by hand. `failsafe dead-letters discard` leaves it so."""
    url = store_url(Duty.OPERATOR)
    session = sign_in(url, read_token(token_file))
    [request_id] = request_ids(url, [name])
    resolve_compensation(url, session, request_id, evidence)
    if as_json:
        print_json({"request_id": request_id, "state": "compensated"})
    else:
        print_lines(f"{name}: compensated, as {session.name} says")
