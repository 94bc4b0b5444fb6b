"""What a reviewer changes of a proposal: parameters and the quotes that show them, nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic_core import to_json

from policies.errors import CanonicalFormError
from policies.findings import Finding, refusal
from policies.proposals import Evidence, Proposal, ProposedAction
from policies.sealing import Sealed, SealedAction
from policies.strict_json import read_json


@dataclass(frozen=True, slots=True)
class Change:
    """A new value for one parameter of one action.

    Attributes:
        action: the action's id, or its type where only one action of the proposal has it.
        parameter: its name.
        text: the value as a person writes it: text where the parameter takes text, otherwise JSON.
        quotes: (source, quote) pairs that show the new value; given, they take the place of those for the old one.
    """

    action: str
    parameter: str
    text: str
    quotes: tuple[tuple[str, str], ...] = ()


def edited(sealed: Sealed, changes: Sequence[Change]) -> Proposal | tuple[Finding, ...]:
    """The proposal with these changes made, or the findings that refuse them.

    It is as unchecked as one that a model made: evidence that showed the old value must show the new one too, or
    validation refuses it.
    """
    findings = tuple(_misnamed(sealed, changes))
    if findings:
        return findings
    return Proposal(
        tuple(_edited(action, [one for one in changes if _means(one, action)]) for action in sealed.actions)
    )


def _misnamed(sealed: Sealed, changes: Sequence[Change]) -> Iterator[Finding]:
    seen = set()
    for one in changes:
        path = f"{one.action}.{one.parameter}"
        meant = [action for action in sealed.actions if _means(one, action)]
        if len(meant) != 1:
            known = ", ".join(action.action_id for action in sealed.actions)
            yield refusal("unknown_action", path, f"{one.action!r} means {len(meant)} actions; name one of: {known}")
        elif one.parameter not in meant[0].values:
            known = ", ".join(meant[0].values)
            yield refusal("parameter_unknown", path, f"it has no such parameter; there are: {known}")
        elif (meant[0].action_id, one.parameter) in seen:
            yield refusal("bad_value", path, "it is changed twice")
        else:
            seen.add((meant[0].action_id, one.parameter))


def _means(change: Change, action: SealedAction) -> bool:
    return change.action in (action.action_id, action.action_type.name)


def _edited(action: SealedAction, changes: Sequence[Change]) -> ProposedAction:
    parameters, evidence = dict(action.values), list(action.evidence)
    for one in changes:
        parameters[one.parameter] = _value(action, one)
        if one.quotes:
            evidence = [given for given in evidence if given.parameter.split(".", 1)[0] != one.parameter]
            evidence += [Evidence(one.parameter, source, quote) for source, quote in one.quotes]
    return ProposedAction(
        action.action_type.name,
        parameters,
        tuple(evidence),
        action.rationale,
        None if action.confidence is None else float(action.confidence),
    )


def _value(action: SealedAction, change: Change) -> Any:
    """The text itself where the action's schema takes it; otherwise what it is as JSON, for the schema to judge."""
    try:
        action.action_type.model.model_validate_json(to_json({**action.values, change.parameter: change.text}))
    except Exception:  # noqa: BLE001 - the schema refuses it, or a validator of the action class fails on it
        try:
            return read_json(change.text.encode())
        except (CanonicalFormError, UnicodeEncodeError):
            pass
    return change.text
