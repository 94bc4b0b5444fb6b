"""Undoing what was done: the compensation of an action is planned from it, before it runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from pydantic import ValidationError

from policies.actions import Action, ActionType
from policies.effects import EffectState
from policies.errors import DefinitionError
from policies.hashing import PARAMETERS, canonical_bytes, domain_hash
from policies.states import Event

REFERENCE = "reference"
"""An undo's field of this name takes the provider's reference of the effect it undoes."""


def undo_fields(kind: ActionType) -> tuple[str, ...]:
    """The parameters of an action type that its undo takes over, the provider's reference apart.

    Raises:
        DefinitionError: the undo needs a parameter that the action lacks or has with another type.
    """
    if kind.undo is None:
        return ()
    known = kind.model.model_fields
    wanted = kind.undo.model_fields
    missing = [name for name, info in wanted.items() if info.is_required() and name not in known and name != REFERENCE]
    if missing:
        raise DefinitionError(
            f"action {kind.name}: its undo {kind.undo.action_type.name} needs {', '.join(missing)}, which the action "
            f"does not have; give both the same field, or call the provider's own id `{REFERENCE}`"
        )
    shared = tuple(name for name in wanted if name in known)
    for name in shared:
        if wanted[name].annotation != known[name].annotation:
            raise DefinitionError(
                f"action {kind.name}: its undo {kind.undo.action_type.name} takes {name} over but gives it another "
                "type; give both the same type"
            )
    return shared


def recovery(kind: ActionType, values: Mapping[str, Any]) -> dict[str, Any]:
    """How an effect would be undone, written down before it is sent; `undo` is None where nothing undoes it."""
    if kind.undo is None:
        return {"undo": None}
    return {"undo": kind.undo.action_type.name, "parameters": {name: values[name] for name in undo_fields(kind)}}


@dataclass(frozen=True, slots=True)
class Undo:
    """One compensation ready to be started."""

    action: Action
    parameters_hash: bytes


def undo_of(kind: ActionType, values: Mapping[str, Any], reference: str | None) -> Undo:
    """The compensation of a done effect with these parameters, which the provider calls `reference`.

    Raises:
        DefinitionError: the action type has no undo, or it does not take these parameters.
    """
    if kind.undo is None:
        raise DefinitionError(f"action {kind.name} has no undo; only reversible actions are compensated")
    return recorded_undo(kind.undo, {name: values[name] for name in undo_fields(kind)}, reference)


def recorded_undo(undo: type[Action], parameters: Mapping[str, Any], reference: str | None) -> Undo:
    """The compensation that was written down with these parameters before its action was sent.

    Raises:
        DefinitionError: the undo does not take them.
    """
    if REFERENCE in undo.model_fields and REFERENCE not in parameters:
        parameters = {**parameters, REFERENCE: reference}
    document = canonical_bytes(dict(parameters))
    try:
        action = undo.model_validate_json(document)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise DefinitionError(f"{undo.action_type.name} cannot undo it: {where}: {first['msg']}") from None
    return Undo(action, domain_hash(PARAMETERS, document))


def next_undo(
    reversible: Sequence[bool], states: Sequence[EffectState | None], undone: Sequence[EffectState | None]
) -> int | None:
    """Index of the action to undo next: the last done one not undone yet; None: none is left, or one is open."""
    for index in reversed(range(len(states))):
        if states[index] is not EffectState.DONE or not reversible[index] or undone[index] is EffectState.DONE:
            continue
        return index if undone[index] in (None, EffectState.INTENDED) else None
    return None


class Bucket(StrEnum):
    """Where a done effect of a failed saga ended."""

    COMPENSATED = "compensated"
    COMPENSATION_FAILED = "compensation_failed"  # the undo was refused: a person restores what can be restored
    IRREVERSIBLE = "irreversible"  # nothing undoes it: orphaned
    UNRESOLVED = "unresolved"  # nobody knows yet


def buckets(
    reversible: Sequence[bool], states: Sequence[EffectState | None], undone: Sequence[EffectState | None]
) -> dict[int, Bucket]:
    """The bucket of every effect that was done or may have been, by index; each is in exactly one."""
    found = {}
    for index, state in enumerate(states):
        if state in (EffectState.UNKNOWN, EffectState.IN_FLIGHT):
            found[index] = Bucket.UNRESOLVED
        elif state in (EffectState.DONE, EffectState.LATE):
            if not reversible[index]:
                found[index] = Bucket.IRREVERSIBLE
            elif undone[index] is EffectState.DONE:
                found[index] = Bucket.COMPENSATED
            elif undone[index] in (EffectState.REFUSED, EffectState.FENCED):
                found[index] = Bucket.COMPENSATION_FAILED
            else:
                found[index] = Bucket.UNRESOLVED
    return found


def after_undo(
    reversible: Sequence[bool], states: Sequence[EffectState | None], undone: Sequence[EffectState | None]
) -> Event | None:
    """What the compensations so far amount to; None: there is still something to undo or to learn.

    It is clean only if every effect that happened was compensated; whatever else is left is for a person.
    """
    open_ones = (EffectState.IN_FLIGHT, EffectState.UNKNOWN)
    if any(state in open_ones for state in undone) or next_undo(reversible, states, undone) is not None:
        return None
    found = set(buckets(reversible, states, undone).values())
    return Event.UNDO_DONE if found <= {Bucket.COMPENSATED} else Event.UNDO_FAILED
