"""JSON read without guesses: one value for one text, or an error."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from policies.errors import CanonicalFormError

JSON: TypeAlias = "bool | int | float | str | Sequence[JSON] | Mapping[str, JSON] | None"


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise CanonicalFormError("a JSON object names one key twice; keep one of them")
    return found


def _no_constant(name: str) -> Any:
    raise CanonicalFormError(f"{name} is not a JSON number; leave it out or send it as a string")


_DECODER = json.JSONDecoder(object_pairs_hook=_without_duplicates, parse_constant=_no_constant)


def read_json(data: bytes) -> Any:
    """The value of UTF-8 JSON bytes.

    Raises:
        CanonicalFormError: not UTF-8, not JSON, a key given twice, NaN or Infinity, or nested too deeply to read.
    """
    try:
        return _DECODER.decode(data.decode("utf-8"))
    except UnicodeDecodeError:
        raise CanonicalFormError("the bytes are not UTF-8; send JSON in UTF-8") from None
    except ValueError as error:  # also integers of more digits than Python converts
        raise CanonicalFormError(f"the bytes are not JSON: {error}") from None
    except RecursionError:
        raise CanonicalFormError("the JSON is nested too deeply; flatten it") from None


def read_members(text: str) -> dict[str, tuple[Any, str]] | None:
    """The members of what `read_json` took, each with the very text of its value; None if it is no object."""
    place = _skip(text, 0, _SPACE)
    if text[place] != "{":
        return None
    members: dict[str, tuple[Any, str]] = {}
    place = _skip(text, place + 1, _SPACE)
    while text[place] != "}":
        name, place = _DECODER.raw_decode(text, place)
        start = _skip(text, place, _SPACE + ":")
        value, place = _DECODER.raw_decode(text, start)
        members[name] = value, text[start:place]
        place = _skip(text, place, _SPACE + ",")
    return members


_SPACE = " \t\r\n"


def _skip(text: str, place: int, characters: str) -> int:
    while text[place] in characters:
        place += 1
    return place
