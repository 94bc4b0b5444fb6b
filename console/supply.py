"""`failsafe supply`: a person adds what a request lacked, and it begins anew."""

from __future__ import annotations

import json
from codecs import BOM_UTF8
from pathlib import Path
from typing import Annotated

import typer

from console.output import AsJson, print_json, print_lines
from console.store import store_url
from console.tokens import TokenFile, read_token
from console.workflow_modules import WorkflowModules, find_workflow
from resources.store.account import read_account
from resources.store.engine import Duty
from resources.store.operator import sign_in

commands = typer.Typer()


@commands.command()
def supply(
    name: Annotated[str, typer.Argument(metavar="ID", help="A request id or operation_id.")],
    reason: Annotated[str, typer.Option(help="Where it comes from; stands in the ledger.")],
    file: Annotated[
        Path | None,
        typer.Option(help='The missing fields as a JSON object: {"amount": "20.00 EUR"}.', exists=True, dir_okay=False),
    ] = None,
    field: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="A missing field whose value is text. Repeatable."),
    ] = None,
    workflow_module: WorkflowModules = None,
    token_file: TokenFile = None,
    as_json: AsJson = False,
) -> None:
    """Add fields that a request in `needs_review` lacks; it begins anew with them, and the model is asked again.

    Takes who submitted the request, or a person with the role operator. Only what was left out or null can be added: to
    change a value, submit the request under another operation_id and discard this one. `failsafe show ID` says what is
    there and why it waits. Whoever supplied something does not vote on the request, and what somebody else than its
    initiator supplied is never released without a vote.

    What was received stays as it is; the ledger gets the names of the fields, who added them and why, not their values.
    """
    from resources.store.inputs import supply as supply_input  # a workflow brings Dagster

    fields = _fields(file, field or [])
    url, token = store_url(Duty.OPERATOR), read_token(token_file)
    session = sign_in(url, token)
    account = read_account(url, name)
    workflow = find_workflow(account.workflow, workflow_module)
    made = supply_input(url, session, account.request_id, workflow, fields, reason)
    if as_json:
        print_json({"request_id": account.request_id, "revision": made.revision, "fields": made.fields})
    else:
        added = ", ".join(made.fields)
        print_lines(f"{account.operation_id}: {added} added, revision {made.revision} begins; the next run takes it up")


def _fields(file: Path | None, given: list[str]) -> bytes:
    texts: dict[str, str] = {}
    for one in given:
        field, equals, value = one.partition("=")
        if not equals or not field:
            raise typer.BadParameter(f"{one!r}: write NAME=VALUE", param_hint="--field")
        if field in texts:
            raise typer.BadParameter(f"{field} is given twice", param_hint="--field")
        texts[field] = value
    if (file is None) == (not texts):
        raise typer.BadParameter("say what is added: --file FIELDS.json or --field NAME=VALUE, one or the other")
    return json.dumps(texts).encode() if file is None else file.read_bytes().removeprefix(BOM_UTF8)
