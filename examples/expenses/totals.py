"""The total of a receipt: stated when other figures on the same receipt confirm it, otherwise left open."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from examples.expenses.labels import Role
from examples.expenses.lines import Amount, Line, amounts
from examples.expenses.reading import Field

# What each check is worth: how unlikely it is that it holds by chance, or for the wrong amount.
WEIGHTS = {
    "labelled as total": 2,
    "cash less change": 3,
    "paid exactly": 2,
    "tax added up": 2,
    "tax summary": 2,
    "sum of partial totals": 3,
    "printed again": 1,
    "equals the subtotal": 1,
    "sum of the items": 1,
    "nothing added after": 1,
    "rounded": 1,
    "what remains after rounding": 4,  # decides between the two totals of one receipt
}
ENOUGH = 4
"""A label and one strong check, or a label and two weak ones."""
LEAD = 2
"""How far the best amount must be ahead of the next one; two amounts that compete are a question for a person."""
MOST = 12
"""Amounts of one role that are combined with each other: a till prints fewer, and reading must stay quick."""
HIGHEST_TAX_PERCENT = 27
"""No country taxes sales higher, so amounts in a wider ratio are not net and tax."""


@dataclass(frozen=True, slots=True)
class _Sheet:
    """The figures of one receipt, arranged for the checks."""

    labelled: list[Amount]
    unlabelled: list[Amount]
    by_role: dict[Role, list[int]]
    roundings: frozenset[int]
    sums: frozenset[int]  # base + tax + service - discount, at least one of them added
    summaries: frozenset[int]  # net + tax from lines that print both
    items: int

    @classmethod
    def of(cls, lines: list[Line]) -> _Sheet:
        found = amounts(lines)
        by_role = {
            role: list(dict.fromkeys(abs(a.hundredths) for a in found if a.role is role and a.hundredths))[:MOST]
            for role in Role
        }
        labelled = [a for a in found if a.role in (Role.TOTAL, Role.ROUNDED) and a.hundredths]
        unlabelled = [a for a in found if a.hundredths > 0]
        roundings = frozenset({0} | {sign * r for r in by_role[Role.ROUNDING] for sign in (1, -1)})
        bases = dict.fromkeys(by_role[Role.BASE] + by_role[Role.COUNT] + by_role[Role.TOTAL])
        sums = frozenset(
            base + tax + service - discount
            for base in bases
            for tax in (0, *by_role[Role.TAX])
            for service in (0, *by_role[Role.SERVICE])
            for discount in (0, *by_role[Role.DISCOUNT])
            if tax or service or discount
        )
        summaries = frozenset(
            net + tax
            for line in lines
            for net, tax in zip(line.values, line.values[1:], strict=False)
            if 0 < tax * 100 <= net * HIGHEST_TAX_PERCENT
        )
        summed = (Role.TOTAL, Role.ROUNDED, Role.BASE, Role.COUNT)
        first = min((a.line for a in found if a.role in summed), default=0)
        bare = [line.values[-1] for line in lines[:first] if line.values and line.bare]
        items = sum(a.hundredths for a in found if a.role is Role.ITEM and a.line < first) + sum(bare)
        return cls(labelled, unlabelled, by_role, roundings, sums, summaries, items)

    def checks(self, value: int) -> tuple[str, ...]:
        """The names of the checks that `value`, in hundredths, passes as the total."""
        with_label = [a for a in self.labelled if a.hundredths == value]
        others = {a.hundredths: a.line for a in self.labelled if a.hundredths != value}
        paid, change = self.by_role[Role.PAID], self.by_role[Role.CHANGE]
        handed = {value + rounding for rounding in self.roundings}  # what a till takes for it
        lines = [a.line for a in with_label]
        held = {
            "labelled as total": bool(with_label),
            "cash less change": any(cash - back in handed for cash in paid for back in (*change, *paid)),
            "paid exactly": not change and not handed.isdisjoint(paid),
            "tax added up": not self.sums.isdisjoint(handed),
            "tax summary": not self.summaries.isdisjoint(handed),
            "sum of partial totals": any(value - part in others and value != 2 * part for part in others),
            "printed again": len(set(lines)) > 1,
            "equals the subtotal": not handed.isdisjoint(self.by_role[Role.BASE]),
            "sum of the items": value == self.items,
            "nothing added after": any(a.final for a in with_label),
            "rounded": any(a.role is Role.ROUNDED for a in with_label),
            "what remains after rounding": bool(lines)
            and any(rounding and others.get(value - rounding, max(lines)) < max(lines) for rounding in self.roundings),
        }
        return tuple(name for name, holds in held.items() if holds)

    def weight(self, value: int) -> int:
        """How well `value` is confirmed as the total."""
        return sum(WEIGHTS[check] for check in self.checks(value))


def read_total(text: str, lines: list[Line]) -> Field[Decimal] | None:
    """The total with its label and digits as quote, or None where no amount is confirmed well enough.

    Where no label says "total" (it was misread), any amount that enough other figures confirm will do.
    """
    sheet = _Sheet.of(lines)
    candidates = sheet.labelled or sheet.unlabelled
    weights = {value: sheet.weight(value) for value in {a.hundredths for a in candidates}}
    ranked = sorted(weights, key=lambda value: (weights[value], value), reverse=True)
    if not ranked or ranked[0] <= 0 or weights[ranked[0]] < ENOUGH:
        return None
    if len(ranked) > 1 and weights[ranked[0]] - weights[ranked[1]] < LEAD:
        return None
    where = next(a for a in candidates if a.hundredths == ranked[0])
    return Field(Decimal(ranked[0]).scaleb(-2), text[where.start : where.end].strip(), sheet.checks(ranked[0]))
