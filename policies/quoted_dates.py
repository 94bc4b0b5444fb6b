"""Dates as they stand in a text, in the forms declared here and no others.

Year first: `2018-03-25`, `2018/03/25`, `2018.03.25`. Day first: `25/03/2018`, `25-3-18`, `25.03.2018`; a number pair
is never read month first. With an English month name: `25 March 2018`, `25-MAR-18`, `25th Mar 2018`, `March 25, 2018`.
Two digits of a year mean this century.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_NAME = (
    r"(?P<name>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
_DAY = r"(?P<day>[0-9]{1,2})"
_MONTH = r"(?P<month>[0-9]{1,2})"
_YEAR = r"(?P<year>[0-9]{4}|[0-9]{2})"
_FORMS = tuple(
    re.compile(rf"(?<![\w./-]){form}(?!(?!T[0-9])\w)(?![./:-][0-9])", re.IGNORECASE | re.ASCII)
    for form in (
        rf"(?P<year>[0-9]{{4}})(?P<mark>[-/.]){_MONTH}(?P=mark){_DAY}",
        rf"{_DAY}(?P<mark>[-/.]){_MONTH}(?P=mark){_YEAR}",
        rf"{_DAY}(?:st|nd|rd|th)?[-/. ]?{_NAME}[-/., ]{{0,2}}{_YEAR}",
        rf"{_NAME}\.? {_DAY}(?:st|nd|rd|th)?,? (?P<year>[0-9]{{4}})",
    )
)
_REACH = 24
"""How far a date may reach beyond a quote that cuts it."""


def dates_in(text: str, start: int, end: int) -> Iterator[date]:
    """Every date that stands whole within `text[start:end]`."""
    low, high = max(0, start - _REACH), min(len(text), end + _REACH)
    for form in _FORMS:
        for found in form.finditer(text, low, high):
            if found.start() < start or found.end() > end:
                continue
            parts = found.groupdict()
            month = _MONTHS.index(parts["name"][:3].lower()) + 1 if parts.get("name") else int(parts["month"])
            year = int(parts["year"])
            try:
                yield date(year + 2000 if year < 100 else year, month, int(parts["day"]))
            except ValueError:  # the 31st of a shorter month, month 13: no date
                continue
