"""What the checks say of work that does not move and of effects that nobody knows about, and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dagster as dg

from policies.asset_names import NO_STUCK_WORK, NO_UNRECONCILED_UNKNOWN
from policies.redaction import clipped
from policies.stuck_work import remedy
from resources.store.stuck import LastingUnknown, StuckWork

MAX_CELL = 500
"""Characters of a table cell; a remedy fits."""

_BY_WHAT = {
    "look-up": "Runs look it up and find nothing out: see to the provider's look-up; "
    "`failsafe unknown list` says what it answered.",
    "person": "Find out at the provider, then say so: `failsafe unknown resolve KEY --done` or `--not-done`.",
}


def stuck_found(stuck: Sequence[StuckWork]) -> dict[str, Any]:
    """What the check `no_stuck_work` says; nothing is lost by it, so it is a warning."""
    return _found(
        NO_STUCK_WORK,
        dg.AssetCheckSeverity.WARN,
        "requests",
        [
            {
                "why": one.reason or one.why,
                "requests": one.requests,
                "oldest_hours": _hours(one.oldest_seconds),
                "oldest": ", ".join(one.oldest),
                "remedy": remedy(one.why, one.reason),
            }
            for one in stuck
        ],
    )


def unknowns_found(unknowns: Sequence[LastingUnknown]) -> dict[str, Any]:
    """What the check `no_unreconciled_unknown` says; nobody knows what such an effect did, so it is an error."""
    return _found(
        NO_UNRECONCILED_UNKNOWN,
        dg.AssetCheckSeverity.ERROR,
        "effects",
        [
            {
                "why": f"{one.provider}: waits for a {one.waits_for}",
                "effects": one.effects,
                "oldest_hours": _hours(one.oldest_seconds),
                "oldest": ", ".join(one.oldest),
                "remedy": _BY_WHAT[one.waits_for],
            }
            for one in unknowns
        ],
    )


def _found(check: str, severity: dg.AssetCheckSeverity, what: str, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    count = sum(row[what] for row in rows)
    metadata: dict[str, Any] = {what: count, "oldest_hours": max((row["oldest_hours"] for row in rows), default=0.0)}
    if rows:
        metadata["by_reason"] = dg.MetadataValue.table([_record(row) for row in rows])
    return {
        "check_name": check,
        "passed": not rows,
        "severity": severity,
        "description": _said(f"{count} {what}", rows[0]) if rows else None,
        "metadata": metadata,
    }


def _said(how_many: str, oldest: dict[str, Any]) -> str:
    since = f"the oldest for {oldest['oldest_hours']:g} h"
    return f"{how_many}, {since}: {oldest['why']} ({oldest['oldest']}). {oldest['remedy']}"


def _record(row: dict[str, Any]) -> dg.TableRecord:
    return dg.TableRecord(
        {name: clipped(cell, MAX_CELL) if isinstance(cell, str) else cell for name, cell in row.items()}
    )


def _hours(seconds: float) -> float:
    return round(seconds / 3600, 2)
