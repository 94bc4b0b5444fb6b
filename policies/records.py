"""Facts from trusted services, and which of them a proposal needs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

from pydantic_core import to_jsonable_python

from policies.actions import MAX_TEXT, Action
from policies.errors import DefinitionError
from policies.proposals import Proposal
from policies.redaction import UNSTORABLE

if TYPE_CHECKING:
    from policies.catalogue import Catalogue


@dataclass(frozen=True, slots=True)
class Record:
    """One record of a trusted service at the moment it was looked up.

    Attributes:
        record: the service's name in the workflow, such as `orders`.
        key: the key it was found by.
        fields: its content; values are JSON or become JSON (money, dates, decimals).
        active: False refuses every action that rests on it, with `reason`.
        principal: external id of the person it stands for, who then never votes.
        reason: why it is not active.
    """

    record: str
    key: str
    fields: Mapping[str, Any]
    active: bool = True
    principal: str | None = None
    reason: str = ""


ResolvedRecords: TypeAlias = Mapping[tuple[str, str], Record | None]
"""What was looked up, by (record, key); None: the service knows no such key."""


@dataclass(frozen=True, slots=True)
class RecordLink:
    """An authority parameter that must be the `field` of the record which the parameter `key` names."""

    parameter: str
    record: str
    field: str
    key: str

    @property
    def is_key(self) -> bool:
        """The parameter names the record itself."""
        return self.parameter == self.key


@cache
def record_links(model: type[Action]) -> tuple[RecordLink, ...]:
    """The record-backed authority parameters of an action type, in the order of its fields.

    Raises:
        DefinitionError: a `key` that is not a parameter of the action.
    """
    kind = model.action_type
    first: dict[str, str] = {}
    for parameter in model.model_fields:
        mark = kind.authority.get(parameter)
        if mark is not None and mark.record is not None:
            first.setdefault(mark.record, mark.key or parameter)
    links = []
    for parameter, mark in kind.authority.items():
        if mark.record is None:
            continue
        key = mark.key or first[mark.record]
        if key not in model.model_fields:
            raise DefinitionError(
                f"action {kind.name}: Authority(key={key!r}) of {parameter!r} is no parameter of it; "
                f"name one of {', '.join(model.model_fields)}"
            )
        links.append(RecordLink(parameter, mark.record, mark.field or parameter, key))
    return tuple(links)


def record_key(value: Any) -> str | None:
    """The look-up key that a key parameter's value stands for; None where it cannot be one."""
    if isinstance(value, str):  # what sealing will refuse is not worth a look-up either
        return value if len(value) <= MAX_TEXT and not UNSTORABLE.search(value) else None
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None


def needed_records(proposal: Proposal, catalogue: Catalogue) -> set[tuple[str, str]]:
    """Every (record, key) that the proposal's actions rest on, so that they are looked up in one batch."""
    return _keys(proposal, catalogue, lambda model, _: record_links(model))


def records_to_fill(proposal: Proposal, catalogue: Catalogue) -> set[tuple[str, str]]:
    """Those of the needed records that sealing takes a parameter from; a proposal that left none out needs none yet."""
    return _keys(proposal, catalogue, left_out)


def left_out(model: type[Action], parameters: Mapping[str, Any]) -> list[RecordLink]:
    """The record-backed parameters that the model left out: they are filled from their record."""
    return [link for link in record_links(model) if link.parameter not in parameters and not link.is_key]


def _keys(
    proposal: Proposal,
    catalogue: Catalogue,
    links: Callable[[type[Action], Mapping[str, Any]], Iterable[RecordLink]],
) -> set[tuple[str, str]]:
    return {
        (link.record, key)
        for action in proposal.actions
        if (entry := catalogue.entries.get(action.type)) is not None
        for link in links(entry.action_type.model, action.parameters)
        if (key := record_key(action.parameters.get(link.key))) is not None
    }


def field_value(record: Record, field: str) -> Any:
    """The record's field as JSON."""
    value = record.fields[field]
    return value if type(value) in (str, int, bool) else to_jsonable_python(value)
