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
