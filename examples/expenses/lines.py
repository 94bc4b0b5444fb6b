"""The money on a receipt: every amount with the role that the words around it give it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from examples.expenses.labels import Role, is_final, role_of

MAX_LINES = 400
MAX_LINE = 200
"""Longer texts and lines are not what a till prints; what lies beyond is not read, so reading stays quick."""

# Not after a letter that may be a misread digit: `S0.10` is 50.10 as likely as 0.10, and neither is certain.
AMOUNT = re.compile(
    r"(?<![\d.,/OISB])(?P<minus>-\s?)?(?:(?:RM|MYR|USD|EUR|GBP|SGD|[$€£])\s?(?P<inner>-)?)?"
    r"(?P<whole>\d{1,3}(?:[.,]\d{3})+|\d{0,6})\s?[.,]\s?(?P<cents>\d{2})(?P<trailing>-)?"
    r"(?![\d:/])(?!\s?%)(?!\s?[.,]\s?\d)",
    re.IGNORECASE,
)
_CURRENCY_ONLY = re.compile(r"[^A-Z0-9]*(?:(?:RM|MYR|USD|EUR|GBP|SGD|C|CR|DR)[^A-Z0-9]*)*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the text, where it starts, and the amounts printed on it, in hundredths."""

    start: int
    text: str
    values: tuple[int, ...] = ()
    spans: tuple[tuple[int, int], ...] = ()

    @property
    def bare(self) -> bool:
        """Nothing but amounts and currency marks stand here, so the label is on a neighbouring line."""
        return _CURRENCY_ONLY.fullmatch(AMOUNT.sub(" ", self.text)) is not None


@dataclass(frozen=True, slots=True)
class Amount:
    """An amount in hundredths, its role, its line, and the part of the text that holds label and digits."""

    hundredths: int
    role: Role
    line: int
    start: int
    end: int
    final: bool = False


def split(text: str) -> list[Line]:
    """The readable lines of `text`; an overlong line is kept empty so that line numbers stay true."""
    lines, start = [], 0
    for raw in text.split("\n", MAX_LINES)[:MAX_LINES]:
        if len(raw) > MAX_LINE:
            lines.append(Line(start, ""))
        else:
            found = list(AMOUNT.finditer(raw))
            lines.append(Line(start, raw, tuple(map(_hundredths, found)), tuple(match.span() for match in found)))
        start += len(raw) + 1
    return lines


def _hundredths(match: re.Match[str]) -> int:
    whole = match["whole"].replace(",", "").replace(".", "") or "0"
    value = int(whole) * 100 + int(match["cents"])
    return -value if match["minus"] or match["inner"] or match["trailing"] else value


def amounts(lines: list[Line]) -> list[Amount]:
    """Every labelled amount; a label alone on its line is tried with the bare amount below it and the one above it."""
    return [*_on_their_line(lines), *_on_neighbours(lines)]


def _on_their_line(lines: list[Line]) -> Iterator[Amount]:
    for number, line in enumerate(lines):
        if not line.values or line.bare:
            continue
        begin, end = line.spans[-1]
        label = AMOUNT.sub("  ", line.text[:begin])
        role = role_of(label, line.values[-1])
        if role is Role.COUNT:  # "ITEM COUNT 2  CHANGE AMT  19.00": the words nearest to the amount decide
            columns = [part for part in re.split(r"\s{2,}", label) if not _CURRENCY_ONLY.fullmatch(part)]
            nearest = role_of(columns[-1], line.values[-1]) if len(columns) > 1 else Role.ITEM
            role = role if nearest is Role.ITEM else nearest
        yield Amount(line.values[-1], role, number, line.start, line.start + end, is_final(label))


def _on_neighbours(lines: list[Line]) -> Iterator[Amount]:
    for number, line in enumerate(lines):
        if line.values or role_of(line.text, 0) is Role.ITEM:
            continue
        for step in (1, -1):
            at = number + step
            while 0 <= at < len(lines) and not lines[at].values and _CURRENCY_ONLY.fullmatch(lines[at].text):
                at += step
            if not 0 <= at < len(lines) or len(lines[at].values) != 1 or not lines[at].bare:
                continue
            other = lines[at]
            first, last = (line, other) if step > 0 else (other, line)
            value = other.values[0]
            yield Amount(
                value, role_of(line.text, value), number, first.start, last.start + len(last.text), is_final(line.text)
            )
