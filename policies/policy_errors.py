"""What is wrong with a policy, in words that name the rule and the remedy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from policies.errors import DefinitionError

_ABSENT = {
    "mode": "say mode: shadow (nothing is executed) or mode: live; there is no default",
    "decisions": "say what each of low, medium, high and critical means",
    "version": 'name this version, in quotes: version: "2026-11-29"',
    "because": "say why, in words a reviewer understands",
    "tier": "say which tier it raises to: low, medium, high or critical",
    "roles": "name the roles that may decide: roles: [lead]",
    "people": "say how many people must approve: people: 1",
    "expires_after": "say when it expires: expires_after: 2d",
}
_WRONG = {
    "over": "write money as 50.00 EUR, or a list with one amount per currency",
    "limits": "write money as 50.00 EUR, or a list with one amount per currency",
    "mode": "write shadow or live",
    "tier": "write low, medium, high or critical",
    "decisions": "the tiers are low, medium, high and critical",
    "version": "put the version in quotes",
    "roles": "write a list of roles: [lead]",
    "permissions": "write a list of roles for each action type",
    "claims": "write a list of parameters for each claim",
}


def definition_error(
    error: ValidationError, document: Mapping[str, Any], where: str, keys: Mapping[str, Sequence[str]]
) -> DefinitionError:
    """One error that lists every mistake with its place and remedy.

    `keys` holds the keys allowed at the top (""), in a rule ("tiers") and in a demand ("review").
    """
    lines = [f"{where}: {_line(detail, document, keys)}" for detail in error.errors(include_url=False)]
    return DefinitionError("\n".join(lines))


def _line(detail: ErrorDetails, document: Mapping[str, Any], keys: Mapping[str, Sequence[str]]) -> str:
    location = tuple("review" if part == "demand" else part for part in detail["loc"])
    name = str(location[-1]) if location else ""
    section = "tiers" if location[:1] == ("tiers",) else "review" if "review" in location else ""
    if detail["type"] == "extra_forbidden":
        close = get_close_matches(name, keys[section], 1)
        hint = f"did you mean {close[0]}? " if close else ""
        problem = f"unknown key {name}; {hint}the keys are {', '.join(keys[section])}"
    elif detail["type"] == "missing":
        problem = f"{name} is missing; {_ABSENT.get(name, 'add it')}"
    elif detail["type"] == "value_error":
        problem = detail["msg"].removeprefix("Value error, ")
    else:
        known = next((str(part) for part in reversed(location) if part in _WRONG), "")
        problem = f"{detail['msg'].lower()}; {_WRONG.get(known, 'correct it')}"
    return f"{_place(location, document)}: {problem}"


def _place(location: tuple[int | str, ...], document: Mapping[str, Any]) -> str:
    """The path, and for a rule also its reason, by which people know it."""
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location).lstrip(".")
    if len(location) > 1 and location[0] == "tiers" and isinstance(location[1], int):
        rule = document["tiers"][location[1]]
        if isinstance(rule, dict) and isinstance(rule.get("because"), str):
            return f"{path} ({rule['because']})"
    return path or "the policy"
