"""Whether an undo takes everything that its action took: a broken one shows when the location loads."""

from __future__ import annotations

from typing import Any, NoReturn

from pydantic.fields import FieldInfo

from policies.actions import Action, ActionType, Authority
from policies.compensation import REFERENCE, undo_fields
from policies.errors import DefinitionError


def check_undo(kind: ActionType) -> None:
    """Accepts an action type without an undo, or whose undo can be built from whatever the action was done with.

    Raises:
        DefinitionError: the undo needs a parameter that the action lacks, or might refuse what the action took: it has
            another type, a limit or a validator of its own.
    """
    if kind.undo is None:
        return
    known, wanted = kind.model.model_fields, kind.undo.model_fields
    for name in undo_fields(kind):
        if not all(limit in known[name].metadata for limit in _limits(wanted[name])):
            _fail(kind, f"takes {name} over but limits it; limit it in the action in the same way")
    reference = wanted.get(REFERENCE)
    any_text = reference is None or (reference.annotation in (str, str | None) and not _limits(reference))
    if REFERENCE not in known and not any_text:
        _fail(kind, f"takes the provider's own id, which is any text; write {REFERENCE}: str")
    own = sorted(one.__qualname__ for one in _validators(kind.undo) - _validators(kind.model))
    if own:
        _fail(kind, f"has a validator of its own, {own[0]}; put it on the action, both may inherit it")


def _fail(kind: ActionType, problem: str) -> NoReturn:
    undo = kind.undo.action_type.name if kind.undo else ""
    raise DefinitionError(
        f"action {kind.name}: its undo {undo} {problem}, so that nothing is done that cannot be undone"
    )


def _limits(field: FieldInfo) -> list[Any]:
    """What a value of the right type must keep to."""
    return [one for one in field.metadata if not isinstance(one, Authority)]


def _validators(model: type[Action]) -> set[Any]:
    """The functions that may refuse what the types allow."""
    found = model.__pydantic_decorators__
    functions = [one.func for one in found.field_validators.values()]
    functions += [one.func for one in found.model_validators.values()]
    return {getattr(one, "__func__", one) for one in functions}
