"""What a person adds to a request that lacked something: fields without a value get one, and no other ever changes."""

from __future__ import annotations

import json
import math
import re
from decimal import Decimal
from typing import Final

from pydantic import BaseModel

from policies.errors import CanonicalFormError, RequestRefused
from policies.strict_json import read_json, read_members

_NUL: Final = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")
"""How JSON writes the one character that text in the store cannot hold."""


def amended(payload: bytes, fields: bytes) -> bytes:
    """`payload` with `fields` added: two JSON objects, whose values stay as they are written, to the digit.

    Raises:
        RequestRefused: no object, no field, a field without value or with a NUL, or one that has a value already.
    """
    given, added = _members("the request as it stands", payload), _members("the input", fields)
    if not added:
        raise RequestRefused("the input names no field; say at least one")
    for name, value in added.items():
        if given.get(name, "null") != "null":
            raise RequestRefused(f"{name} has a value already, and input only adds; nothing was changed")
        problem = _problem(value)
        if problem is not None:
            raise RequestRefused(f"{name} {problem}")
    members = (f"{json.dumps(name)}: {value}" for name, value in {**given, **added}.items())
    return f"{{{', '.join(members)}}}".encode()


def field_names(fields: bytes) -> tuple[str, ...]:
    """The names in a JSON object that `amended` took, sorted."""
    return tuple(sorted(_members("the input", fields)))


def reads_the_same(one: object, other: object) -> bool:
    """Whether two values of a request are equal, where NaN equals NaN, which it does not to Python."""
    if _is_nan(one) or _is_nan(other):
        return _is_nan(one) and _is_nan(other)
    if isinstance(one, BaseModel) and isinstance(other, BaseModel):
        same = type(one) is type(other) and reads_the_same(one.model_extra, other.model_extra)
        return same and reads_the_same(vars(one), vars(other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(reads_the_same(value, other[key]) for key, value in one.items())
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(reads_the_same, one, other))
    return one == other


def _is_nan(value: object) -> bool:
    return isinstance(value, float | Decimal) and math.isnan(value)


def _problem(value: str) -> str | None:
    """Why a value, as JSON writes it, cannot be added."""
    if value == "null":
        return "is null, which is no value; say one, or leave the field out"
    if _NUL.search(value):
        return "holds a NUL character, which no text in the store can; leave it out"
    try:
        json.dumps(json.loads(value), ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return "holds half of a character (a lone surrogate); repair where it was cut"
    except RecursionError:
        return "is nested too deeply; flatten it"
    return None


def _members(what: str, data: bytes) -> dict[str, str]:
    try:
        read_json(data)  # one value for one text: no key twice, no NaN
        members = read_members(data.decode())
    except CanonicalFormError as error:
        raise RequestRefused(f"{what}: {error}") from None
    if members is None:
        raise RequestRefused(f"{what} is no JSON object with a value for each field")
    return {name: text for name, (_, text) in members.items()}
