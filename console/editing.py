"""`failsafe edit`: a reviewer changes parameters of what is asked, and somebody else decides on the result."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from console.deciding import Name, check_prefix, votable
from console.output import AsJson, print_json, print_lines
from console.store import store_url
from console.tokens import TokenFile, read_token
from console.workflow_modules import WorkflowModules, find_workflow
from policies.edits import Change
from resources.store.engine import Duty
from resources.store.votes import sign_in

commands = typer.Typer()


@commands.command()
def edit(
    name: Name,
    change: Annotated[
        list[str],
        typer.Option(
            "--set",
            metavar="ACTION.PARAMETER=VALUE",
            help="A new value: order.refund.amount=40.00 EUR. ACTION is the type, or the id where several have it. "
            "Repeatable.",
        ),
    ],
    review_hash: Annotated[
        str, typer.Option("--hash", help="Twelve or more digits of the review hash that `show` printed.")
    ],
    reason: Annotated[str, typer.Option(help="Why; stands in the ledger.")],
    quote: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ACTION.PARAMETER=SOURCE:TEXT",
            help="Where the new value stands, word for word: order.refund.amount=message:40.00 EUR. Repeatable.",
        ),
    ] = None,
    workflow_module: WorkflowModules = None,
    token_file: TokenFile = None,
    as_json: AsJson = False,
) -> None:
    """Change parameters of what is asked. It becomes a new proposal, which is judged anew and somebody else decides on.

    Votes on the earlier one count no more. A value that needs evidence must still be shown by a quote or a record.
    """
    from resources.store.edits import Edited, edit_proposal  # brings Dagster, which other commands do without

    changes = _changes(change, quote or [])
    url, token = store_url(Duty.REVIEWER), read_token(token_file)
    session = sign_in(url, token)
    asked = votable(url, name)
    check_prefix(asked, review_hash)
    made = edit_proposal(url, session, asked, find_workflow(asked.workflow, workflow_module), changes, reason)
    if isinstance(made, Edited):
        if as_json:
            print_json({"request_id": asked.request_id, "revision": made.revision, "proposal": made.proposal_hash})
        else:
            print_lines(f"{asked.operation_id}: revision {made.revision}; it is judged anew, and somebody else decides")
        return
    if as_json:
        print_json({"findings": [{"code": one.code, "at": one.parameter, "message": one.message} for one in made]})
    else:
        print_lines("nothing was changed:", *(f"  {one.parameter}: {one.message} ({one.code})" for one in made))
    raise typer.Exit(1)


def _changes(given: list[str], quotes: list[str]) -> list[Change]:
    shown_by: dict[str, list[tuple[str, str]]] = {}
    for one in quotes:
        path, text = _parted(one, "--quote")
        found = re.fullmatch(r"((?:record:)?[^:]+):(.+)", text, re.DOTALL)
        if found is None:
            raise typer.BadParameter(f"{one!r}: say where it stands: SOURCE:TEXT", param_hint="--quote")
        shown_by.setdefault(path, []).append((found[1], found[2]))
    changes = []
    for one in given:
        path, text = _parted(one, "--set")
        action, _, parameter = path.rpartition(".")
        changes.append(Change(action, parameter, text, tuple(shown_by.pop(path, ()))))
    if shown_by:
        raise typer.BadParameter(f"{next(iter(shown_by))} is quoted but not set", param_hint="--quote")
    return changes


def _parted(given: str, option: str) -> tuple[str, str]:
    path, equals, text = given.partition("=")
    if not equals or "." not in path:
        raise typer.BadParameter(f"{given!r}: write ACTION.PARAMETER=...", param_hint=option)
    return path, text
