"""How a form asks for a parameter: by what its action class says of its type, with its value as people write it."""

from __future__ import annotations

import json
import types
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import ValidationError

from policies.money import Money

_LONG = 80
"""Characters of a text from which on it gets several lines."""


@dataclass(frozen=True, slots=True)
class Control:
    """One control of a form.

    Attributes:
        kind: `line`, `lines`, `date` or `choice`.
        hint: how a value is written; empty where that is plain.
        options: what a `choice` offers, each as it is written.
        blank: what an empty field means as JSON; None: the empty text.
    """

    kind: Literal["line", "lines", "date", "choice"]
    hint: str = ""
    options: tuple[str, ...] = ()
    blank: str | None = None


def control_for(annotation: Any, value: Any) -> Control:
    """The control for a parameter of this type with this value."""
    text = written(value)
    kinds = [_bare(one) for one in _alternatives(annotation)]
    optional = types.NoneType in kinds
    kinds = [one for one in kinds if one is not types.NoneType]
    kind = kinds[0] if len(kinds) == 1 else None
    if kind is str:
        return Control("lines" if "\n" in text or len(text) > _LONG else "line")
    blank = "null" if optional else None
    note = "; empty for none" if optional else ""
    options = _options(kind)
    if options:
        known = options if text in options else (*options, text)
        return Control("choice", options=("", *known) if optional and "" not in known else known, blank=blank)
    if kind is date:
        return Control("date", f"year, month, day{note}", blank=blank)
    if kind is Money:
        return Control("line", f"like 50.00 EUR{note}", blank=blank)
    if kind in {int, float, Decimal}:
        return Control("line", f"a number{note}", blank=blank)
    return Control("line" if isinstance(value, str) else "lines", f"as JSON or text{note}", blank=blank)


def written(value: Any) -> str:
    """A parameter's value as people write it: text as it is, money as an amount, none as nothing, the rest as JSON."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    try:
        return str(Money.model_validate(value))
    except ValidationError:
        return json.dumps(value, ensure_ascii=False)


def _alternatives(annotation: Any) -> tuple[Any, ...]:
    return get_args(annotation) if get_origin(annotation) in {Union, types.UnionType} else (annotation,)


def _bare(annotation: Any) -> Any:
    return get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation


def _options(kind: Any) -> tuple[str, ...]:
    if kind is bool:
        return ("true", "false")
    if get_origin(kind) is Literal:
        return tuple(written(one) for one in get_args(kind))
    if isinstance(kind, type) and issubclass(kind, Enum):
        return tuple(written(one.value) for one in kind)
    return ()
