"""Which batches have work that is due, and why, as the database sees it now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import sqlalchemy as sa

from resources.store.queries import query

APPROVAL_LANDED: Final = "approval_landed"
QUEUED: Final = "queued"
OTHER_REASONS: Final = (
    "retry_due",
    "lease_expired",
    "unknown_effect",
    "approval_expired",
    "notice_due",
    QUEUED,
    "cases_closed",
    "approval_waits",
)
"""With a landed approval, every reason of the view `due_batches`; the most pressing first."""

REST: Final = timedelta(seconds=30)
LONGEST_REST: Final = timedelta(minutes=10)
"""A batch whose runs find nothing to do rests this long: doubled by each idle run, up to the longest."""


@dataclass(frozen=True, slots=True)
class DueBatch:
    """One batch with work that is due."""

    workflow: str
    batch: str
    reasons: tuple[str, ...]
    fresh: tuple[str, ...]
    """Those of the reasons for which something became due after the batch was last opened."""
    resting: bool
    """Its last runs found nothing to do and nothing is fresh, so the next run waits."""


def rest_after(times: int) -> timedelta:
    """How long to wait after this many runs (one or more) that came to nothing; `due_work.sql` says the same in SQL."""
    doubled: timedelta = REST * 2 ** min(times - 1, 20)
    return min(LONGEST_REST, doubled)


def due_batches(connection: sa.Connection, workflows: Sequence[str], reasons: Sequence[str]) -> list[DueBatch]:
    """Batches of these workflows that are due for one of these reasons, least recently opened first."""
    rows = connection.execute(
        query("due_work"),
        {"workflows": list(workflows), "reasons": list(reasons), "rest": REST, "longest_rest": LONGEST_REST},
    )
    return [
        DueBatch(row.workflow, row.batch_key, _pressing(row.reasons), _pressing(row.fresh), row.resting) for row in rows
    ]


def _pressing(reasons: Sequence[str]) -> tuple[str, ...]:
    return tuple(sorted(reasons, key=(APPROVAL_LANDED, *OTHER_REASONS).index))
