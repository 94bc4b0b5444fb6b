"""`failsafe delegate` and `failsafe delegations`: lending a role for a time, seeing loans, taking them back."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Annotated
from uuid import UUID

import typer

from console.output import AsJson, print_json, print_lines, print_table, shown
from console.store import store_url
from console.tokens import TokenFile, read_token
from policies.errors import RequestRefused
from resources.store.delegations import Delegation, delegations, take_back
from resources.store.delegations import delegate as lend
from resources.store.engine import Duty
from resources.store.votes import sign_in

commands = typer.Typer()
group = typer.Typer(
    no_args_is_help=True, help="Roles that people lent each other. You see yours; an operator sees all."
)
commands.add_typer(group, name="delegations")


def zoned(text: str) -> datetime:
    """The instant that a text means.

    Raises:
        typer.BadParameter: it is none, or says no zone: it would mean another instant on another machine.
    """
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter("write a time such as 2026-11-30T18:00+01:00") from None
    if instant.tzinfo is None:
        raise typer.BadParameter(f"{text} has no time zone; add it, such as {text}+01:00 or {text}Z")
    return instant


@commands.command()
def delegate(
    role: Annotated[str, typer.Argument(help="A role of yours.")],
    to: Annotated[str, typer.Argument(help="Who may act in it: the name of a person.")],
    until: Annotated[str, typer.Option(help="When it ends, with its zone: 2026-11-30T18:00+01:00. At most 90 days.")],
    reason: Annotated[str, typer.Option(help="Why; stands in the ledger.")],
    starting: Annotated[str | None, typer.Option("--from", help="When it begins; default: now.")] = None,
    token_file: TokenFile = None,
    as_json: AsJson = False,
) -> None:
    """Lend a role of yours to somebody for a time.

    They decide in your place: your vote and theirs count as one. They gain nothing on requests that you may not decide
    on yourself, and your limits bind them beside their own.
    """
    ends, begins = zoned(until), None if starting is None else zoned(starting)
    url = store_url(Duty.REVIEWER)
    session = sign_in(url, read_token(token_file))
    made = lend(url, session, role, to, until=ends, reason=reason, starting=begins)
    if as_json:
        print_json({"id": made, "role": role, "to": to, "until": ends})
    else:
        print_lines(f"{to} may act as {role} in your place until {shown(ends)}; failsafe delegations revoke {made}")


@group.command("list")
def list_all(token_file: TokenFile = None, as_json: AsJson = False) -> None:
    """List the roles that you lent or were lent, the latest first."""
    url = store_url(Duty.REVIEWER)
    found = delegations(url, sign_in(url, read_token(token_file)))
    if as_json:
        print_json([asdict(one) for one in found])
        return
    print_table(
        ["role", "lent by", "to", "from", "until", "standing", "reason", "id"],
        [
            (one.role, one.lender, one.borrower, one.starts_at, one.ends_at, _standing(one), one.reason, one.id)
            for one in found
        ],
        empty="nobody lent a role",
    )


@group.command()
def revoke(
    delegation: Annotated[UUID, typer.Argument(help="Its id, as `failsafe delegations list` shows it.")],
    token_file: TokenFile = None,
    as_json: AsJson = False,
) -> None:
    """Take a role back at once, as who lent it or as an operator. Votes cast by it count no longer."""
    url = store_url(Duty.REVIEWER)
    if not take_back(url, sign_in(url, read_token(token_file)), delegation):
        raise RequestRefused("there is no such loan in force that is yours to end; see `failsafe delegations list`")
    if as_json:
        print_json({"id": delegation, "revoked": True})
    else:
        print_lines("taken back")


def _standing(one: Delegation) -> str:
    if one.in_force:
        return "in force"
    return f"taken back {shown(one.revoked_at)}" if one.revoked_at else "not in force"
