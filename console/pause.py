"""`failsafe pause` and `failsafe resume`: the switch that stops effects from starting."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Annotated

import typer

from console.output import AsJson, print_json, print_lines, print_table
from console.store import store_url
from console.tokens import TokenFile, read_token
from policies.errors import RequestRefused
from resources.store.engine import Duty
from resources.store.operator import sign_in
from resources.store.pausable import pausable
from resources.store.pauses import EVERYTHING, Reach, Scope, pause, pauses, resume

commands = typer.Typer()
pausing = typer.Typer(
    no_args_is_help=True,
    help="Stop effects from starting, compensations included, at once and everywhere. What is held back waits and uses "
    "up no attempt; what is in flight cannot be stopped and is named. Uses the operator's login.",
)
resuming = typer.Typer(no_args_is_help=True, help="Lift a pause: what it held back is due at once.")
commands.add_typer(pausing, name="pause")
commands.add_typer(resuming, name="resume")

Name = Annotated[str, typer.Argument(metavar="NAME", help="One of `failsafe pause names`.")]
Reason = Annotated[str, typer.Option(help="Why; stands in the ledger.")]

_ABOUT = {
    Scope.WORKFLOW: "one workflow",
    Scope.ACTION_TYPE: "one action type, its undo included",
    Scope.PROVIDER: "everything that goes through one provider (`failsafe pause names` lists what they are called)",
}
_Act = Callable[[Scope, str, str, TokenFile, bool], None]


@pausing.command("list")
def list_all(as_json: AsJson = False) -> None:
    """List pauses in force, with what each holds back now and what is in flight beside it."""
    found = pauses(store_url(Duty.OPERATOR))
    if as_json:
        print_json([asdict(one) for one in found])
        return
    print_table(
        ["paused", "name", "since", "by", "reason", "holds back", "in flight"],
        [
            (
                _word(one.scope),
                one.name,
                one.paused_at,
                one.paused_by,
                one.reason,
                f"{one.reach.held_back} requests",
                one.reach.in_flight,
            )
            for one in found
        ],
        empty="nothing is paused",
    )


@pausing.command()
def names(as_json: AsJson = False) -> None:
    """List what can be paused: workflows, their action types, and providers, each called as a pause has to call it."""
    known = pausable(store_url(Duty.OPERATOR))
    if as_json:
        print_json(known)
    else:
        print_table(
            ["scope", "name"], [(_word(scope), name) for scope, found in known.items() for name in found], empty=""
        )


def _pause(scope: Scope, name: str, reason: str, token_file: TokenFile, as_json: bool) -> None:
    url = store_url(Duty.OPERATOR)
    reach = pause(url, sign_in(url, read_token(token_file)), scope, name, reason)
    if as_json:
        print_json({"scope": scope, "name": name, **asdict(reach)})
    else:
        print_lines(*_lines(scope, name, reach))


def _lines(scope: Scope, name: str, reach: Reach) -> list[str]:
    what = _word(scope) if scope is Scope.EVERYTHING else f"{_word(scope)} {name}"
    lines = [f"{what} is paused: no effect starts; {reach.held_back} requests are held back now"]
    if reach.in_flight:
        lines += [f"{len(reach.in_flight)} effects were started before and cannot be stopped:", *reach.in_flight]
    return lines


def _resume(scope: Scope, name: str, reason: str, token_file: TokenFile, as_json: bool) -> None:
    url = store_url(Duty.OPERATOR)
    what = _word(scope) if scope is Scope.EVERYTHING else f"{_word(scope)} {name}"
    if not resume(url, sign_in(url, read_token(token_file)), scope, name, reason):
        raise RequestRefused(f"{what} is not paused; see `failsafe pause list`")
    if as_json:
        print_json({"scope": scope, "name": name, "resumed": True})
    else:
        print_lines(f"{what} goes on, unless another pause holds it: see `failsafe pause list`")


def _word(scope: Scope) -> str:
    return scope.value.replace("_", "-")


def _named(scope: Scope, act: _Act) -> Callable[..., None]:
    def command(name: Name, reason: Reason, token_file: TokenFile = None, as_json: AsJson = False) -> None:
        act(scope, name, reason, token_file, as_json)

    return command


def _nameless(act: _Act) -> Callable[..., None]:
    def command(reason: Reason, token_file: TokenFile = None, as_json: AsJson = False) -> None:
        act(Scope.EVERYTHING, EVERYTHING, reason, token_file, as_json)

    return command


for _group, _act, _verb in ((pausing, _pause, "Pause"), (resuming, _resume, "Resume")):
    _group.command(_word(Scope.EVERYTHING), help=f"{_verb} every workflow.")(_nameless(_act))
    for _scope, _about in _ABOUT.items():
        _group.command(_word(_scope), help=f"{_verb} {_about}.")(_named(_scope, _act))
