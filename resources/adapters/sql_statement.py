"""How an SQL statement names an action's parameters."""

from __future__ import annotations

import json
import re
from typing import Any, get_args

from pydantic import BaseModel

from policies.actions import Action

_TOKEN = re.compile(
    r"""(?P<fixed>[eE]'(?:[^'\\]|\\.|'')*' | '(?:[^']|'')*' | "[^"]*"   # texts and quoted names
         | --[^\n]* | /\*.*?\*/ | (?P<tag>\$\w*\$).*?(?P=tag)          # comments and dollar-quoted texts
         | :: | %)
      | :(?P<name>[a-zA-Z_]\w*)""",
    re.DOTALL | re.VERBOSE,
)


def translated(statement: str) -> tuple[str, set[str]]:
    """The statement with the driver's placeholders for `:name`, and those names. Texts, comments and `::` stay."""
    names: set[str] = set()

    def placeholder(token: re.Match[str]) -> str:
        if token["name"] is None:
            return token["fixed"].replace("%", "%%")
        names.add(token["name"])
        return f"%({token['name']})s"

    return _TOKEN.sub(placeholder, statement), names


def parameter_names(model: type[BaseModel]) -> list[str]:
    """Names by which a statement may use the parameters of an action; a nested model's fields are joined by `_`."""
    names: list[str] = []
    for name, info in model.model_fields.items():
        nested = _nested(info.annotation)
        names += [f"{name}_{field}" for field in nested.model_fields] if nested else [name]
    return names


def parameter_values(action: Action) -> dict[str, Any]:
    """The action's parameters by those names: text, numbers, booleans or None; lists and objects as JSON text."""
    values: dict[str, Any] = {}
    for name, value in action.model_dump(mode="json").items():
        nested = _nested(type(action).model_fields[name].annotation)
        if nested:
            values |= {f"{name}_{field}": _plain((value or {}).get(field)) for field in nested.model_fields}
        else:
            values[name] = _plain(value)
    return values


def _plain(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, (list, dict)) else value


def _nested(annotation: Any) -> type[BaseModel] | None:
    """The model that a field holds, be it optional or not."""
    members = (annotation, *get_args(annotation))
    return next((part for part in members if isinstance(part, type) and issubclass(part, BaseModel)), None)
