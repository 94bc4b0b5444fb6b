"""A time as a form without scripts gives it, date and clock, in a zone that is said beside it."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from policies.errors import RequestRefused


def zoned_instant(what: str, text: str, zone: str) -> datetime:
    """The instant that a date and time mean in a zone; a zone left out is UTC.

    Raises:
        RequestRefused: it is no date and time, there is no such zone, or clocks there show this time twice or never.
    """
    try:
        local = datetime.fromisoformat(text)
    except ValueError:
        raise RequestRefused(f"{what}: write a date and time such as 2026-11-30T18:00") from None
    if local.tzinfo is not None:
        return local
    try:
        place = ZoneInfo(zone or "UTC")
    except (KeyError, ValueError, OSError):  # unknown, a path out of the database, a folder of it
        raise RequestRefused(f"there is no time zone {zone!r}; write one such as Europe/Berlin, or UTC") from None
    first, second = (local.replace(tzinfo=place, fold=fold) for fold in (0, 1))
    if first.utcoffset() != second.utcoffset():
        raise RequestRefused(f"{what}: clocks in {zone} change then and show {text} twice or never; say it in UTC")
    try:
        return first.astimezone(UTC)
    except OverflowError:
        raise RequestRefused(f"{what}: {text} is out of all calendars") from None
