"""Numbers and amounts of money as they stand in a text, read only where there is one way to read them.

Accepted: `48`, `48.2`, `48.20`, `48,20`, `1,234.50`, `1.234,50`, `1'234.50`, `1,234,567`. One separator followed by
exactly three digits (`1.234`) has two readings and counts for none, except for money in a currency whose minor unit
settles it: without decimals (JPY) it groups thousands, with three (KWD) it is the decimal point. What cannot group
thousands (`0.500`, `1234.567`) is a decimal. Digits grouped by spaces, parts of dates, times, ranges and fractions,
percentages, and digits attached to letters that are not a currency count for nothing either.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from policies.currencies import CODES, SYMBOLS, currencies_named

MAX_DIGITS = 24
"""Longest run of digits and separators that is read as a number."""

_RUN = re.compile(r"[0-9]+(?:[.,'\u2019][0-9]+)*")
_NAMES = "|".join(sorted((re.escape(name) for name in (*CODES, *SYMBOLS)), key=len, reverse=True))
_NAME_BEFORE = re.compile(rf"(?<![^\W\d_])({_NAMES})[)\]]?[ \u00a0:]?[-\u2212]?$")
_NAME_AFTER = re.compile(rf"[ \u00a0]?({_NAMES})(?![^\W_])")
_GROUP_BEFORE = re.compile(r"(?:^|[^0-9.,'\u2019])[0-9]{1,3}[ \u00a0\u2009\u202f]$")
_GROUP_AFTER = re.compile(r"[ \u00a0\u2009\u202f][0-9]{3}(?![0-9])")
_JOINED_BEFORE = re.compile(r"(?:[.,'\u2019]|[0-9][-\u2212\u2013/:])$")
_JOINED_AFTER = re.compile(r"[-\u2212\u2013/:][0-9]| ?%")
_TORN_BEFORE = re.compile(r"[0-9] ?[.,] $")  # digits torn apart, as scanners do: "48. 20"
_TORN_AFTER = re.compile(r" [.,] ?[0-9]|[.,] [0-9]")
_MINUS_BEFORE = re.compile(r"(.?)[-\u2212]( ?)$")
_MINUS_AFTER = re.compile(r"[-\u2212]")
_CONTEXT = 8


@dataclass(frozen=True, slots=True)
class QuotedNumber:
    """A run of digits in a quote. `currencies` may be meant by the name beside it; None: no name stands there."""

    text: str
    negative: bool
    currencies: frozenset[str] | None

    def value(self, minor_digits: int | None = None) -> Decimal | None:
        """The one number it can mean, or None; `minor_digits` of the currency where it is an amount of money."""
        plain = _plain(self.text.replace("\u2019", "'"), minor_digits)
        if plain is None:
            return None
        number = Decimal(plain)
        return -number if self.negative else number


def _plain(text: str, minor_digits: int | None) -> str | None:
    separators = re.findall(r"[.,']", text)
    if not separators:
        return None if len(text) > 1 and text.startswith("0") else text
    last = separators[-1]
    whole, _, rest = text.rpartition(last)
    if len(separators) == 1 and last != "'":
        return _one_separator(whole, rest, minor_digits)
    groups = re.split(r"[.,']", whole)
    if len(set(separators)) == 1:
        return "".join((*groups, rest)) if _are_thousands([*groups, rest]) else None
    grouped = last != "'" and len(set(separators[:-1])) == 1 and last not in whole and _are_thousands(groups)
    return f"{''.join(groups)}.{rest}" if grouped else None


def _one_separator(whole: str, rest: str, minor_digits: int | None) -> str | None:
    if whole != "0" and whole.startswith("0"):
        return None
    if len(rest) != 3 or whole == "0" or len(whole) > 3 or minor_digits == 3:
        return f"{whole}.{rest}"
    return whole + rest if minor_digits == 0 else None


def _are_thousands(groups: list[str]) -> bool:
    return 1 <= len(groups[0]) <= 3 and not groups[0].startswith("0") and all(len(one) == 3 for one in groups[1:])


def numbers_in(text: str, start: int, end: int) -> Iterator[QuotedNumber]:
    """Every number that stands whole within `text[start:end]`: a quote that cuts `148.20` does not show 48.20."""
    low = start
    while low > 0 and start - low < MAX_DIGITS and text[low - 1] in "0123456789.,'\u2019":
        low -= 1
    high = end
    while high < len(text) and high - end < MAX_DIGITS and text[high] in "0123456789.,'\u2019":
        high += 1
    for run in _RUN.finditer(text, low, high):
        if run.start() < start or run.end() > end or len(run[0]) > MAX_DIGITS:
            continue
        before = text[max(0, run.start() - _CONTEXT) : run.start()]
        number = _number(run[0], before, text[run.end() : run.end() + _CONTEXT])
        if number is not None:
            yield number


def _number(run: str, before: str, after: str) -> QuotedNumber | None:
    if _is_part_of_more(run, before, after):
        return None
    name_before, name_after = _NAME_BEFORE.search(before), _NAME_AFTER.match(after)
    if (before[-1:].isalnum() and name_before is None) or (after[:1].isalnum() and name_after is None):
        return None
    inner = _MINUS_BEFORE.search(before)
    outer = _MINUS_BEFORE.search(before[: name_before.start()]) if name_before is not None else inner
    if (inner and inner[2]) or (outer and (outer[1].isalnum() or outer[2])):
        return None  # a dash between words, not a sign
    named = [currencies_named(found[1]) for found in (name_before, name_after) if found is not None]
    return QuotedNumber(
        run,
        any((inner, outer, _MINUS_AFTER.match(after))),
        frozenset.intersection(*named) if named else None,
    )


def _is_part_of_more(run: str, before: str, after: str) -> bool:
    """Whether the digits belong to something longer: a date, a range, digits grouped by spaces or torn apart."""
    if _JOINED_BEFORE.search(before) or _JOINED_AFTER.match(after) or (before[-1:], after[:1]) == ("(", ")"):
        return True
    if run.isdigit() and (_TORN_BEFORE.search(before) or _TORN_AFTER.match(after)):
        return True
    first_group = re.split(r"[.,'\u2019]", run, maxsplit=1)[0]
    return bool(
        (len(first_group) == 3 and _GROUP_BEFORE.search(before))
        or (run.isdigit() and len(run) <= 3 and _GROUP_AFTER.match(after))
    )
