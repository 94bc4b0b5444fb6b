"""What waits for a decision, with filters, and what may be decided on together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from pydantic import ValidationError
from starlette.responses import Response

from console.desk.bulk import BULK_CAPS, BulkKind, bulk_kind
from console.desk.desk import Visit
from console.desk.document import Substance, substance
from policies.amounts import exceeds
from policies.errors import RequestRefused
from policies.money import Money
from policies.tiers import Tier
from resources.store.desk_inbox import MAX_LINES, InboxLine, read_inbox

AGES: Final = {
    "": ("any age", timedelta(0)),
    "1h": ("an hour or more", timedelta(hours=1)),
    "8h": ("8 hours or more", timedelta(hours=8)),
    "1d": ("a day or more", timedelta(days=1)),
    "3d": ("3 days or more", timedelta(days=3)),
}


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the inbox. `bulk` is set where it may be decided on together with others like it."""

    waiting: InboxLine
    substance: Substance | None
    bulk: BulkKind | None


def inbox_page(visit: Visit) -> Response:
    """The inbox, filtered by workflow, tier, age and amount."""
    chosen = {name: visit.query.get(name, "").strip() for name in ("workflow", "tier", "age", "amount")}
    if chosen["age"] not in AGES or chosen["tier"] not in {"", *Tier}:
        raise RequestRefused("this filter does not exist; choose one on the page")
    at_least = _amount(chosen["amount"])
    waiting = read_inbox(
        visit.desk.database_url,
        visit.person.secret,
        workflow=chosen["workflow"] or None,
        tier=chosen["tier"] or None,
        age=AGES[chosen["age"]][1],
    )
    lines = [line for line in map(_line, waiting) if at_least is None or _reaches(line, at_least)]
    return visit.page(
        "inbox.html",
        lines=lines,
        groups=_groups(lines),
        caps=BULK_CAPS,
        chosen=chosen,
        ages={name: label for name, (label, _) in AGES.items()},
        tiers=list(Tier),
        workflows=sorted({line.waiting.workflow for line in lines}),
        full=len(waiting) == MAX_LINES,
    )


def _line(waiting: InboxLine) -> Line:
    found = None if waiting.document is None else substance(waiting.document)
    kind = None if waiting.obstacle or found is None else bulk_kind(waiting.workflow, waiting.tier, found)
    return Line(waiting, found, kind)


def _amount(text: str) -> Money | None:
    if not text:
        return None
    try:
        return Money.parse(text.upper())
    except ValidationError:
        raise RequestRefused(f"{text!r} is no amount; write it like 50.00 EUR") from None


def _reaches(line: Line, at_least: Money) -> bool:
    """Whether it moves as much or more. What cannot be told from here is never filtered away."""
    if line.substance is None:
        return True
    return any(
        exceeds(amount, [at_least]) or (amount.currency, abs(amount.minor)) == (at_least.currency, at_least.minor)
        for amount in line.substance.amounts
    )


def _groups(lines: Iterable[Line]) -> dict[BulkKind, list[Line]]:
    """What may be decided on together: two or more of one kind."""
    found: dict[BulkKind, list[Line]] = {}
    for line in lines:
        if line.bulk is not None:
            found.setdefault(line.bulk, []).append(line)
    return {kind: alike for kind, alike in found.items() if len(alike) > 1}
