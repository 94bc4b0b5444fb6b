"""The parameters of what is asked as a form changes them, and the changes that a form makes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from console.desk.controls import Control, control_for, written
from console.desk.forms import Form
from policies.edits import Change
from policies.errors import NotPossibleNow, RequestRefused
from policies.strict_json import read_json

if TYPE_CHECKING:
    from policies.actions import Authority
    from resources.workflow import Workflow

SPARE_QUOTES = 1
"""Empty rows for quotes beside those there are."""

Quotes = tuple[tuple[str, str], ...]
"""Pairs of source and quote."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of one action, as it is asked."""

    action_id: str
    name: str
    field: str
    """Its part in the names of the form's fields."""
    value: str
    control: Control
    rests_on: str
    """What a new value must rest on, for people; empty: nothing is asked of it."""
    quotes: Quotes

    @property
    def is_quoted(self) -> bool:
        """Whether a quote can show it."""
        return bool(self.rests_on or self.quotes)


@dataclass(frozen=True, slots=True)
class Entry:
    """A parameter with what somebody entered for it, and what is wrong with that."""

    parameter: Parameter
    value: str
    quotes: Quotes
    problems: tuple[str, ...] = ()

    @property
    def rows(self) -> Quotes:
        """The rows for quotes: those that were entered and empty ones."""
        return (*self.quotes, *(("", ""),) * SPARE_QUOTES)


def parameters_of(document: bytes, workflow: Workflow) -> list[Parameter]:
    """Every parameter of the actions in a review document, in their order.

    Raises:
        NotPossibleNow: the workflow as it is here does not have these actions any more.
    """
    content: Any = read_json(document)
    found = []
    for position, action in enumerate(content["actions"], start=1):
        entry = workflow.catalogue.entries.get(action["type"])
        if entry is None:
            raise NotPossibleNow(f"{workflow.name} here knows no {action['type']} any more; it has to be proposed anew")
        fields = entry.action_type.model.model_fields
        for name, value in action["parameters"].items():
            text = written(value)
            known = fields.get(name)
            quotes = tuple(
                (one["source"], one["quote"])
                for one in action["evidence"]
                if one["parameter"].split(".", 1)[0].split("[", 1)[0] == name
            )
            control = control_for(None if known is None else known.annotation, value)
            rule = _rule(entry.action_type.authority.get(name), name)
            found.append(Parameter(action["action_id"], name, f"{position}.{name}", text, control, rule, quotes))
    return found


def source_names(document: bytes, workflow: Workflow) -> list[str]:
    """What a quote may be from: the request's fields and the trusted records."""
    content: Any = read_json(document)
    return [*(one["name"] for one in content["sources"]), *(f"record:{name}" for name in workflow.records)]


def unchanged(parameters: Iterable[Parameter]) -> list[Entry]:
    """The form before anybody entered something."""
    return [Entry(one, one.value, one.quotes) for one in parameters]


def entered(parameters: Iterable[Parameter], form: Form) -> list[Entry]:
    """What a form says of each parameter.

    Raises:
        RequestRefused: it does not speak of all of them, so it is none of this page's.
    """
    return [_entered(one, form) for one in parameters]


def changes_of(entries: Sequence[Entry]) -> list[Change]:
    """What was changed: values, or the quotes that show them. What stands as it was shown is no change."""
    return [
        Change(one.parameter.action_id, one.parameter.name, _text(one), () if same_quotes else one.quotes)
        for one in entries
        if not (same_quotes := one.quotes == one.parameter.quotes) or one.value != one.parameter.value
    ]


def _entered(parameter: Parameter, form: Form) -> Entry:
    if len(form.all(f"value.{parameter.field}")) != 1:
        raise RequestRefused("the form does not say every parameter once; open the page again. Nothing was changed")
    rows = zip(form.all(f"source.{parameter.field}"), form.all(f"quote.{parameter.field}"), strict=False)
    quotes = tuple((source, quote) for source, quote in rows if quote)
    return Entry(parameter, form.get(f"value.{parameter.field}"), quotes)


def _text(entry: Entry) -> str:
    blank = entry.parameter.control.blank
    return entry.value if entry.value or blank is None else blank


def _rule(authority: Authority | None, name: str) -> str:
    if authority is None:
        return ""
    if authority.record is None:
        return "a quote must show it"
    return f"must be what the record {authority.record} says ({authority.field or name})"
