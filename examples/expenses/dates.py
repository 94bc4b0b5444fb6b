"""The day of a receipt, day first; stated when one day stands out from the others printed on it."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from datetime import date

from examples.expenses.lines import Line
from examples.expenses.reading import Field

_NAMES = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_MONTHS = {name: number for number, name in enumerate(_NAMES, 1)}
_NAME = rf"(?P<month>{'|'.join(_NAMES)})[A-Z]{{0,6}}"
_NOTATIONS = tuple(
    re.compile(notation, re.IGNORECASE)
    for notation in (
        r"(?<![\w/.\-])(?P<year>20\d\d)(?P<mark>\s?[/.\-]\s?)(?P<month>\d\d?)(?P=mark)(?P<day>\d\d?)(?!\d)",
        r"(?<![\w/.\-])(?P<day>\d\d?)(?P<mark>\s?[/.\-]\s?)(?P<month>\d\d?)(?P=mark)(?P<year>20\d\d|\d\d)(?![\d/]|\.\d|-\d)",
        rf"(?<![\w/.\-])(?P<day>\d\d?)(?:ST|ND|RD|TH)?[\s\-/.,']{{0,2}}{_NAME}[\s\-/.,']{{0,2}}(?P<year>20\d\d|\d\d)(?![\d:])",
        rf"\b{_NAME}[\s.]{{0,2}}(?P<day>\d\d?)(?:ST|ND|RD|TH)?[\s,]{{1,3}}(?P<year>20\d\d)(?!\d)",
        r"(?<![\w/.\-])(?P<year>20\d\d)(?P<month>0[1-9]|1[0-2])(?P<day>[0-2]\d|3[01])(?!\d)",
    )
)
_OF_THE_SALE = re.compile(r"DATE|TARIKH|DATUM", re.IGNORECASE)
_OF_SOMETHING_ELSE = re.compile(
    r"EXPIR|VALID|UNTIL|DUE|PRINT|DELIVER|SINCE|BEFORE|FROM|BORN|CLOSE|VOUCHER|PROMO", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class _Day:
    value: date
    quote: str
    labelled: bool


def read_date(lines: list[Line]) -> Field[date] | None:
    """The day of the sale, or None where there is none or several compete."""
    days = list(_days(lines))
    for check, chosen in (("labelled as date", [day for day in days if day.labelled]), ("the only date", days)):
        if len({day.value for day in chosen}) == 1:
            return Field(chosen[0].value, chosen[0].quote, (check,))
    ranked = Counter(day.value for day in days).most_common(2)
    if len(ranked) == 2 and ranked[0][1] > ranked[1][1]:
        quote = next(day.quote for day in days if day.value == ranked[0][0])
        return Field(ranked[0][0], quote, ("printed most often",))
    return None


def _days(lines: list[Line]) -> list[_Day]:
    return [
        _Day(value, match[0], _OF_THE_SALE.search(before) is not None)
        for line in lines
        for notation in _NOTATIONS
        for match in notation.finditer(line.text)
        if (value := _value(match)) and not _OF_SOMETHING_ELSE.search(before := line.text[: match.start()])
    ]


def _value(match: re.Match[str]) -> date | None:
    year, day = int(match["year"]), int(match["day"])
    month = _MONTHS.get(match["month"].upper()) or int(match["month"])
    if month > 12:  # only month first makes a day of it
        day, month = month, day
    try:
        return date(year if year > 99 else 2000 + year, month, day)
    except ValueError:
        return None
