"""What a form says, read within bounds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final
from urllib.parse import parse_qsl

from starlette.requests import Request

from policies.errors import RequestRefused

MAX_FORM: Final = 65_536
"""Bytes of a form: a full bulk vote takes a quarter of it."""

MAX_FIELDS: Final = 500

_FORM = "application/x-www-form-urlencoded"


@dataclass(frozen=True, slots=True)
class Form:
    """Fields in the order they were sent; a name may come several times."""

    fields: list[tuple[str, str]] = field(default_factory=list)

    def get(self, name: str) -> str:
        """The one value of a field, or the empty text."""
        values = self.all(name)
        return values[0] if len(values) == 1 else ""

    def all(self, name: str) -> list[str]:
        """Every value of a field."""
        return [value for key, value in self.fields if key == name]


async def read_form(request: Request) -> Form:
    """The form that was sent.

    Raises:
        RequestRefused: it is no form, too large, not UTF-8, or has too many fields.
    """
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _FORM:
        raise RequestRefused(f"send a form ({_FORM})")
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > MAX_FORM:
            raise RequestRefused(f"the form is larger than {MAX_FORM} bytes; say it shorter")
    try:
        fields = parse_qsl(body.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=MAX_FIELDS)
    except ValueError:
        raise RequestRefused(f"the form is not UTF-8 or has more than {MAX_FIELDS} fields") from None
    return Form([(name, _storable(value)) for name, value in fields])


def _storable(text: str) -> str:
    """A text as it is stored: line breaks as one character, and a NUL, which Postgres refuses, written out."""
    return text.replace("\r\n", "\n").replace("\0", "\\x00")
