"""`failsafe dead-letters`: look at what was parked, and redrive it or give it up."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict
from datetime import datetime
from typing import Annotated
from uuid import UUID

import typer

from console.output import AsJson, print_json, print_lines, print_table, shown
from console.store import store_url
from console.tokens import TokenFile, read_token
from resources.store.cases import Case, DeadLetter, dead_letters, find_case, request_ids
from resources.store.engine import Duty
from resources.store.operator import Leaving, discard, redrive, sign_in

commands = typer.Typer()
group = typer.Typer(
    no_args_is_help=True,
    help="Requests that were parked because only a person can go on with them; their batch stays red until each is "
    "redriven, discarded or cancelled. Uses the operator's login: failures and payloads are nobody else's business.",
)
commands.add_typer(group, name="dead-letters")

Workflow = Annotated[str | None, typer.Option(help="Only those of this workflow.")]
BatchKey = Annotated[str | None, typer.Option("--batch", help="Only those of this batch.")]
Failure = Annotated[str | None, typer.Option(help="Only those whose failure contains this text.")]
Names = Annotated[
    list[str] | None, typer.Argument(metavar="ID", help="Request ids or operation_ids; or narrow by an option.")
]
Name = Annotated[str, typer.Argument(metavar="ID", help="A request id or operation_id.")]
Reason = Annotated[str, typer.Option(help="Why; stands in the ledger.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do it. Without this, only what would happen is said.")]


@group.command("list")
def list_all(
    workflow: Workflow = None,
    batch: BatchKey = None,
    failure: Failure = None,
    closed: Annotated[bool, typer.Option("--closed", help="Also those that are closed, with how.")] = False,
    as_json: AsJson = False,
) -> None:
    """List dead letters, oldest first."""
    found = dead_letters(store_url(Duty.OPERATOR), workflow=workflow, batch=batch, failure=failure, closed=closed)
    if as_json:
        print_json([asdict(one) for one in found])
        return
    print_table(
        ["operation", "workflow", "batch", "state", "step", "failure", "opened", "closed"],
        [
            (
                one.operation_id,
                one.workflow,
                one.batch_key,
                one.state,
                one.step,
                one.failure,
                one.opened_at,
                one.resolution,
            )
            for one in found
        ],
        empty="no dead letters",
    )


@group.command()
def show(name: Name, as_json: AsJson = False) -> None:
    """Show a dead letter: what failed, what was received, what was done, and where its story is told."""
    case = find_case(store_url(Duty.OPERATOR), name)
    if as_json:
        print_json({**asdict(case), "payload": case.payload.decode("utf-8", "backslashreplace")})
    else:
        print_lines(*_lines(case))


@group.command("redrive")
def redrive_all(
    names: Names = None,
    *,
    reason: Reason,
    workflow: Workflow = None,
    batch: BatchKey = None,
    failure: Failure = None,
    yes: Yes = False,
    token_file: TokenFile = None,
    as_json: AsJson = False,
) -> None:
    """Try parked requests anew: judged by today's policy, approved anew. What is done is not repeated."""
    chosen = _chosen(names, workflow, batch, failure)
    _leave(redrive, "redriven", chosen, reason, yes=yes, token=read_token(token_file), as_json=as_json)


@group.command("discard")
def discard_all(
    names: Names = None,
    *,
    reason: Reason,
    workflow: Workflow = None,
    batch: BatchKey = None,
    failure: Failure = None,
    yes: Yes = False,
    token_file: TokenFile = None,
    as_json: AsJson = False,
) -> None:
    """Give parked requests up for good. What is done stays done; to have it undone, use `failsafe cancel` instead."""
    chosen = _chosen(names, workflow, batch, failure)
    _leave(discard, "discarded", chosen, reason, yes=yes, token=read_token(token_file), as_json=as_json)


def _chosen(names: list[str] | None, workflow: str | None, batch: str | None, failure: str | None) -> list[UUID]:
    narrowed = any(one is not None for one in (workflow, batch, failure))
    if bool(names) == narrowed:
        raise typer.BadParameter("name requests, or narrow them by --workflow, --batch or --failure, one or the other")
    url = store_url(Duty.OPERATOR)
    if names:
        return request_ids(url, names)
    return [one.request_id for one in dead_letters(url, workflow=workflow, batch=batch, failure=failure)]


def _leave(
    act: Callable[..., list[Leaving]],
    done: str,
    chosen: list[UUID],
    reason: str,
    *,
    yes: bool,
    token: str,
    as_json: bool,
) -> None:
    url = store_url(Duty.OPERATOR)
    leaving = act(url, sign_in(url, token), chosen, reason, dry_run=not yes)
    going = [one for one in leaving if one.obstacle is None]
    if as_json:
        print_json({"dry_run": not yes, "requests": [asdict(one) for one in leaving]})
    else:
        print_table(
            ["request", done if yes else f"would be {done}", "what it did and did not undo"],
            [(one.request_id, f"no: {one.obstacle}" if one.obstacle else "yes", one.left_done) for one in leaving],
            empty="no dead letters",
        )
        print_lines(f"{len(going)} of {len(leaving)} {done}" if yes else "nothing was changed; say --yes to do it")
    if yes and len(going) < len(leaving):
        raise typer.Exit(1)


def _lines(case: Case) -> Iterator[str]:
    yield f"{case.operation_id}  {case.state}{f': {case.reason}' if case.reason else ''}"
    yield f"workflow: {case.workflow}, version {case.workflow_version}, batch {case.batch_key}"
    yield f"request: {case.request_id}"
    yield f"trace: {case.trace_id}"
    yield f"story: failsafe ledger {case.request_id} (stream {case.ledger_stream})"
    for letter in case.letters:
        yield from _letter(letter)
    for effect in case.effects:
        outcome = effect["reference"] or effect["error"] or ""
        yield f"effect: {effect['key']} at {effect['provider']}: {effect['state']} {outcome}".rstrip()
        if effect["first_sent_at"]:
            first = datetime.fromisoformat(effect["first_sent_at"])
            yield f"  first sent {shown(first)}, attempts: {effect['attempts']}"
        yield f"  with: {json.dumps(effect['parameters'], ensure_ascii=False)}"
        if effect["kind"] == "forward":
            yield f"  to undo it: {json.dumps(effect['recovery'], ensure_ascii=False)}"
    yield f"the request as received{', with what was supplied since' if case.supplied else ''}:"
    yield from (f"  │ {line}" for line in case.payload.decode("utf-8", "backslashreplace").split("\n"))


def _letter(letter: DeadLetter) -> Iterator[str]:
    yield f"failed in {letter.step} at {shown(letter.opened_at)}:"
    yield from (f"  │ {line}" for line in letter.failure.split("\n"))
    if letter.closed_at is not None:
        yield f"  closed at {shown(letter.closed_at)} by {letter.closed_by}: {letter.resolution}"
