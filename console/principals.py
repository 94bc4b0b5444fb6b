"""`failsafe principals`: who may submit and who may decide."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from console.output import AsJson, print_json, print_lines, print_note, print_table
from console.store import store_url
from policies.errors import FailsafeError
from policies.money import Money
from resources.store.engine import Duty
from resources.store.principals import (
    Kind,
    Limits,
    create_principal,
    disable_principal,
    list_principals,
    set_limits,
    set_roles,
)

commands = typer.Typer()
group = typer.Typer(
    no_args_is_help=True,
    help="People and services that act here. Each has a token, generated and shown once: nobody can read it again. "
    "Uses the operator's login.",
)
commands.add_typer(group, name="principals")

Name = Annotated[str, typer.Argument(help="How people call it; unique.")]
Roles = Annotated[list[str] | None, typer.Option("--role", help="A role that a policy names; repeatable.")]


@group.command()
def add(
    name: Name,
    role: Roles = None,
    external_id: Annotated[
        str | None,
        typer.Option(
            help="Who it is elsewhere, such as an employee number. Whoever is a request's payee never votes on it."
        ),
    ] = None,
    service: Annotated[bool, typer.Option("--service", help="A program, which may submit but never votes.")] = False,
    as_json: AsJson = False,
) -> None:
    """Create a principal and print its token, this once, on standard output."""
    kind: Kind = "service" if service else "human"
    made = create_principal(store_url(Duty.OPERATOR), kind=kind, name=name, external_id=external_id, roles=role or [])
    if as_json:
        print_json({"id": made.id, "name": name, "kind": kind, "roles": role or [], "token": made.token})
    else:
        print_note(f"{kind} {name} created; keep its token, it is not shown again:")
        print_lines(made.token)


@group.command("list")
def list_all(as_json: AsJson = False) -> None:
    """Show every principal; no credential is among what is shown."""
    found = list_principals(store_url(Duty.OPERATOR))
    if as_json:
        print_json([asdict(one) for one in found])
    else:
        print_table(
            ["name", "kind", "roles", "limits", "external id", "disabled"],
            [
                (one.name, one.kind, one.roles, _limits_said(one.limits), one.external_id, one.disabled_at)
                for one in found
            ],
            empty="nobody yet; add somebody: failsafe principals add NAME --role ROLE",
        )


@group.command()
def disable(name: Name, as_json: AsJson = False) -> None:
    """End what a principal may do, at once: no session, no vote, no new effect on its authority."""
    if not disable_principal(store_url(Duty.OPERATOR), name):
        raise FailsafeError(f"there is no enabled principal {name!r}; see `failsafe principals list`")
    _done(as_json, name, f"{name} is disabled")


@group.command("set-roles")
def set_all_roles(name: Name, role: Roles = None, as_json: AsJson = False) -> None:
    """Replace the roles of a principal by those given; with none given, it has none. Its open votes are recounted."""
    if not set_roles(store_url(Duty.OPERATOR), name, role or []):
        raise FailsafeError(f"there is no principal {name!r}; see `failsafe principals list`")
    _done(as_json, name, f"{name} has the roles: {', '.join(role or []) or 'none'}")


@group.command("set-limits")
def set_all_limits(
    name: Name,
    limit: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="ACTION=AMOUNT...",
            help="What they may decide on: order.refund=500.00EUR, once for each currency; an action type alone where "
            "it moves no money.",
        ),
    ] = None,
    lift: Annotated[bool, typer.Option("--lift", help="Take all limits away: the roles alone decide.")] = False,
    as_json: AsJson = False,
) -> None:
    """Bound what a person may decide on, beside their roles. What the limits do not name they do not cover.

    They replace earlier ones, and votes that were cast are held against them too.
    """
    if lift == bool(limit):
        raise typer.BadParameter("give at least one ACTION=AMOUNT, or --lift and none")
    limits = None if lift else _limits(limit or [])
    if not set_limits(store_url(Duty.OPERATOR), name, limits):
        raise FailsafeError(f"there is no principal {name!r}; see `failsafe principals list`")
    _done(as_json, name, f"{name} may decide within: {_limits_said(limits) or 'its roles alone'}")


def _limits(given: list[str]) -> dict[str, dict[str, int]]:
    limits: dict[str, dict[str, int]] = {}
    for one in given:
        action_type, equals, text = one.partition("=")
        amounts = limits.setdefault(action_type, {})
        if not equals:
            continue
        try:
            amount = Money.parse(f"{text[:-3].strip()} {text[-3:]}")
        except ValueError:
            raise typer.BadParameter(f"{one!r}: write an amount with its currency, such as 500.00EUR") from None
        if amount.minor < 0 or amount.currency in amounts:
            raise typer.BadParameter(f"{one!r}: one amount for each currency, not below 0")
        amounts[amount.currency] = amount.minor
    if "" in limits:
        raise typer.BadParameter("name the action type before the =, such as order.refund=500.00EUR")
    return limits


def _limits_said(limits: Limits | None) -> list[str]:
    return [
        f"{action_type} {', '.join(str(Money(minor=minor, currency=code)) for code, minor in amounts.items())}".strip()
        for action_type, amounts in (limits or {}).items()
    ]


def _done(as_json: bool, name: str, line: str) -> None:
    if as_json:
        print_json({"name": name, "done": True})
    else:
        print_lines(line)
