"""Reads merchant, date, total and currency from a receipt's text by fixed rules: same text, same reading."""

from __future__ import annotations

import unicodedata
from typing import TypeVar

from examples.expenses.currencies import read_currency
from examples.expenses.dates import read_date
from examples.expenses.lines import split
from examples.expenses.merchants import read_merchant
from examples.expenses.reading import Field, Reading
from examples.expenses.totals import read_total

Value = TypeVar("Value")


def read(text: str) -> Reading:
    """What `text` states with enough certainty; every quote stands in it verbatim. Never raises."""
    lines = split(text)
    return Reading(
        merchant=_visible(read_merchant(lines)),
        date=_visible(read_date(lines)),
        total=_visible(read_total(text, lines)),
        currency=_visible(read_currency(lines)),
    )


def _visible(field: Field[Value] | None) -> Field[Value] | None:
    """Abstains where a quote holds characters that a reader would not see as they are (controls, bidi marks)."""
    return None if field and any(map(_is_unseen, field.quote)) else field


def _is_unseen(character: str) -> bool:
    return unicodedata.category(character).startswith("C") and character not in "\n\t\r"
