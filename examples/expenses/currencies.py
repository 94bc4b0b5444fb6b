"""The currency of a receipt, where it prints one that names a single currency; a bare `$` does not."""

from __future__ import annotations

import re

from examples.expenses.lines import Line
from examples.expenses.reading import Field

_MARKS = {
    "RM": "MYR", "MYR": "MYR", "EUR": "EUR", "€": "EUR", "GBP": "GBP", "£": "GBP", "US$": "USD", "USD": "USD",
    "S$": "SGD", "SGD": "SGD", "THB": "THB", "฿": "THB", "IDR": "IDR", "AUD": "AUD", "A$": "AUD", "CHF": "CHF",
}  # fmt: skip
_MARK = re.compile(r"(?<![A-Z$])(?:" + "|".join(re.escape(mark) for mark in _MARKS) + r")(?![A-Z])", re.IGNORECASE)


def read_currency(lines: list[Line]) -> Field[str] | None:
    """The ISO 4217 code of the only currency marked on the receipt, or None where none or several are."""
    found = [match[0] for line in lines for match in _MARK.finditer(line.text)]
    codes = {_MARKS[mark.upper()] for mark in found}
    return Field(codes.pop(), found[0], ("the only currency",)) if len(codes) == 1 else None
