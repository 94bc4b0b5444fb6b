"""Secrets of adapters: declared by the name of an environment variable, resolved in the run, never shown."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from types import UnionType
from typing import Annotated, Any, TypeAlias, Union, get_args, get_origin
from urllib.parse import unquote, urlsplit

import dagster as dg
from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from policies.errors import DefinitionError

MASK = "***"


class _SecretField:
    """Marks a field as a secret; the type checker sees a plain `str`."""


Secret: TypeAlias = Annotated[str, _SecretField()]
"""A field that accepts only `dg.EnvVar("NAME")`: `token: fs.Secret`. A literal would be readable in the Dagster UI."""


class HiddenText(str):
    """A resolved secret: an ordinary string to the code that sends it, masked wherever it is shown by `repr`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return repr(MASK)


@cache
def secret_fields(model: type[BaseModel]) -> frozenset[str]:
    """Names of the fields of `model` declared as `Secret` or `Secret | None`.

    Raises:
        DefinitionError: a secret stands inside a list or dict, or has a literal default.
    """
    names = set()
    for name, info in model.model_fields.items():
        optional = get_args(info.annotation) if get_origin(info.annotation) in (Union, UnionType) else ()
        direct = any(isinstance(mark, _SecretField) for mark in info.metadata) or any(map(_is_secret, optional))
        where = f"adapter {model.__module__}.{model.__qualname__}, field {name}"
        if not direct:
            if _holds_secret(info.annotation):
                raise DefinitionError(f"{where}: declare each secret as a field of its own: `{name}: fs.Secret`")
            continue
        if info.default not in (PydanticUndefined, None):
            check_reference(info.default, where)
        names.add(name)
    return frozenset(names)


def check_reference(value: object, where: str) -> None:
    """Accepts a `dg.EnvVar` that names an environment variable.

    Raises:
        DefinitionError: `value` is anything else. The message never repeats the value: it may be the secret itself.
    """
    if not isinstance(value, dg.EnvVar):
        raise DefinitionError(f'{where}: give a secret by name only, as dg.EnvVar("NAME_OF_VARIABLE"), not as a value')
    if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", value.env_var_name) is None:
        raise DefinitionError(f"{where}: dg.EnvVar takes the name of an environment variable (letters, digits, _)")


def scrubbed(text: str, secrets: Iterable[str]) -> str:
    """`text` with every occurrence of a secret masked; of a secret URL its password alone is masked as well."""
    found = {part for secret in secrets for part in (secret, *_passwords(secret)) if part}
    for part in sorted(found, key=len, reverse=True):
        text = text.replace(part, MASK)
    return text


def _passwords(secret: str) -> tuple[str, ...]:
    try:
        password = urlsplit(secret).password
    except ValueError:
        return ()
    return (password, unquote(password)) if password else ()


def _is_secret(annotation: Any) -> bool:
    return any(isinstance(mark, _SecretField) for mark in getattr(annotation, "__metadata__", ()))


def _holds_secret(annotation: Any) -> bool:
    return _is_secret(annotation) or any(map(_holds_secret, get_args(annotation)))
