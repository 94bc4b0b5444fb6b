"""`failsafe inbox`, `show`, `approve`, `deny`: a person decides on exactly what was shown."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated, Any

import typer

from console.account_lines import account_lines, input_lines
from console.knock import knock_once
from console.output import AsJson, print_json, print_lines, print_table, shown
from console.review import review_lines
from console.store import store_url
from console.tokens import TokenFile, read_token
from policies.errors import RequestRefused, VoteRefused
from resources.store.account import Account, read_account
from resources.store.engine import Duty
from resources.store.inbox import Asked, find_asked, waiting_approvals
from resources.store.votes import Session, Tally, Vote, cast_vote, sign_in

commands = typer.Typer()

SHORTEST_PREFIX = 12
"""Hex digits of a review hash that a vote must repeat: 48 bits, more than anybody can steer."""

Name = Annotated[str, typer.Argument(metavar="ID", help="A request id, approval id or operation_id.")]
Hash = Annotated[
    str | None,
    typer.Option("--hash", help=f"The first {SHORTEST_PREFIX} or more digits of the review hash that `show` printed."),
]


@commands.command()
def inbox(
    workflow: Annotated[str | None, typer.Option(help="Only this workflow.")] = None,
    tier: Annotated[str | None, typer.Option(help="Only this tier: low, medium, high or critical.")] = None,
    as_json: AsJson = False,
) -> None:
    """List what waits for a vote, soonest expiry first."""
    waiting = waiting_approvals(store_url(Duty.REVIEWER), workflow, tier)
    if as_json:
        print_json([asdict(one) for one in waiting])
        return
    print_table(
        ["operation", "workflow", "tier", "who may decide", "votes", "expires", "approval"],
        [
            (
                one.operation_id,
                one.workflow,
                one.tier,
                one.roles,
                f"{one.votes_for} of {one.quorum}",
                one.expires_at,
                one.approval_id,
            )
            for one in waiting
        ],
        empty="nothing waits for a vote",
    )


@commands.command()
def show(name: Name, as_json: AsJson = False) -> None:
    """Show a request: the whole review document if somebody is or was asked, otherwise what the store knows of it."""
    asked = find_asked(store_url(Duty.REVIEWER), name)
    if asked is None:
        _show_account(read_account(store_url(Duty.OPERATOR), name), as_json)
    elif as_json:
        print_json(_asked_document(asked))
    else:
        print_lines(*_asked_lines(asked))


@commands.command()
def approve(
    name: Name,
    reason: Annotated[str, typer.Option(help="Why; stands in the ledger.")] = "",
    review_hash: Hash = None,
    token_file: TokenFile = None,
    as_json: AsJson = False,
) -> None:
    """Vote to release a request: shows all of it, then asks, or takes --hash as proof that you saw it.

    Your vote is bound to the proposal and the document shown. It is not taken from who submitted the request, on whose
    behalf it is or whom it pays, and not after it expired, was decided or changed.
    """
    url, token = store_url(Duty.REVIEWER), read_token(token_file)
    session = sign_in(url, token)
    asked = votable(url, name)
    if not as_json:
        print_lines(*_asked_lines(asked))
    if review_hash is not None:
        check_prefix(asked, review_hash)
    elif as_json:
        raise typer.BadParameter("with --json, say --hash: the review hash that `failsafe show` printed")
    elif not typer.confirm(f"\n{session.name}, approve exactly this?", err=True):
        raise typer.Exit(1)
    tally = _cast(url, session, asked, "approve", reason)
    _report("approve", session, asked, tally, as_json)
    if tally.outcome == "released":
        knock_once(url, asked.approval_id)


@commands.command()
def deny(
    name: Name,
    reason: Annotated[str, typer.Option(help="Why; stands in the ledger.")],
    review_hash: Hash = None,
    token_file: TokenFile = None,
    as_json: AsJson = False,
) -> None:
    """Vote against a request. One denial rejects it, whatever others said; it cannot be taken back."""
    url, token = store_url(Duty.REVIEWER), read_token(token_file)
    session = sign_in(url, token)
    asked = votable(url, name)
    if review_hash is not None:
        check_prefix(asked, review_hash)
    _report("deny", session, asked, _cast(url, session, asked, "deny", reason), as_json)


def votable(url: str, name: str) -> Asked:
    """What is asked about the request that `name` means, while votes are taken on it.

    Raises:
        RequestRefused: nobody is asked about it.
        VoteRefused: it takes no votes any more.
    """
    asked = find_asked(url, name)
    if asked is None:
        raise RequestRefused(f"nobody is asked to decide on {name!r}; `failsafe show` says how it stands")
    if asked.outcome != "open":
        raise VoteRefused("resolved", f"{asked.operation_id} takes no votes any more: {asked.outcome}")
    return asked


def check_prefix(asked: Asked, prefix: str) -> None:
    """Accepts the beginning of the review hash, as proof that the document was seen as it is.

    Raises:
        typer.BadParameter: it is too short to prove anything.
        VoteRefused: it is of another document.
    """
    if len(prefix) < SHORTEST_PREFIX:
        raise typer.BadParameter(f"give at least {SHORTEST_PREFIX} digits of the review hash", param_hint="--hash")
    if not asked.review_hash.hex().startswith(prefix.lower()):
        raise VoteRefused(
            "changed", "this is not the document with that hash: it changed; show it again and decide on it"
        )


def _asked_lines(asked: Asked) -> list[str]:
    return [
        f"{asked.operation_id}  {asked.outcome}: {asked.votes_for} of {asked.quorum} votes",
        f"expires: {shown(asked.expires_at)}",
        *review_lines(asked.document),
        "",
        f"approval: {asked.approval_id}",
        f"review hash: {asked.review_hash.hex()}",
        *input_lines(asked.request_state, asked.request_id),
    ]


def _asked_document(asked: Asked) -> dict[str, Any]:
    return {**asdict(asked), "document": json.loads(asked.document)}


def _show_account(account: Account, as_json: bool) -> None:
    if as_json:
        texts = {name: text and text.decode("utf-8", "backslashreplace") for name, text in _texts(account).items()}
        print_json({**asdict(account), **texts})
    else:
        print_lines(*account_lines(account))


def _texts(account: Account) -> dict[str, bytes | None]:
    return {"payload": account.payload, "output": account.output}


def _cast(url: str, session: Session, asked: Asked, vote: Vote, reason: str) -> Tally:
    return cast_vote(
        url,
        session,
        approval_id=asked.approval_id,
        vote=vote,
        proposal_hash=asked.proposal_hash,
        review_hash=asked.review_hash,
        reason=reason,
    )


def _report(vote: Vote, session: Session, asked: Asked, tally: Tally, as_json: bool) -> None:
    if as_json:
        print_json({"vote": vote, "voter": session.name, "request_id": asked.request_id, **asdict(tally)})
        return
    standing = {
        "open": f"{tally.votes_for} of {tally.votes_needed} votes; it waits for more",
        "released": "released: the next run carries it out",
        "denied": "denied: nothing will be done",
    }
    print_lines(f"{asked.operation_id}: {standing[tally.outcome]}")
