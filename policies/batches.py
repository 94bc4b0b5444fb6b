"""Batches: the time window a request was received in, as a partition key.

A day belongs to the zone the workflow names; an hour is always UTC, since local hours repeat when clocks go back.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from policies.errors import DefinitionError

DAY_FORMAT = "%Y-%m-%d"
HOUR_FORMAT = "%Y-%m-%d-%H"


@dataclass(frozen=True, slots=True)
class BatchWindows:
    """How a workflow's requests fall into batches. Build it with `daily` or `hourly`."""

    kind: Literal["day", "hour"]
    zone: str
    since: date

    @property
    def format(self) -> str:
        """The `strftime` format of a key."""
        return DAY_FORMAT if self.kind == "day" else HOUR_FORMAT

    def key_for(self, instant: datetime) -> str:
        """The key of the window that holds `instant` (with its zone)."""
        if instant.tzinfo is None:
            raise ValueError("an instant needs its zone; pass a datetime with tzinfo")
        return instant.astimezone(ZoneInfo(self.zone)).strftime(self.format)

    def bounds(self, key: str) -> tuple[datetime, datetime]:
        """First instant of the window and first instant after it, in UTC.

        Raises:
            ValueError: the key is not of this kind.
        """
        start = datetime.strptime(key, self.format).replace(tzinfo=UTC)
        if start.strftime(self.format) != key:
            raise ValueError(f"{key!r} is no batch key; write it as {self.format}")
        if self.kind == "hour":
            return start, start + timedelta(hours=1)
        return self._midnight(start.date()), self._midnight(start.date() + timedelta(days=1))

    def keys(self, now: datetime) -> Iterator[str]:
        """Every key from `since` to the window that holds `now`, which counts from its first instant on."""
        last = self.key_for(now)
        start = datetime.combine(self.since, time.min)
        step = timedelta(days=1) if self.kind == "day" else timedelta(hours=1)
        while (key := start.strftime(self.format)) <= last:
            yield key
            start += step

    def _midnight(self, day: date) -> datetime:
        # Where clocks skip midnight, fold=0 gives the instant of the change: the day's first. Where they repeat it,
        # fold=0 gives the earlier one: again the day's first.
        return datetime.combine(day, time.min, ZoneInfo(self.zone)).astimezone(UTC)


def daily(since: str | date, zone: str = "UTC") -> BatchWindows:
    """One batch a day in `zone` (an IANA name), from `since` (`YYYY-MM-DD`) on.

    Raises:
        DefinitionError: no such date or zone.
    """
    try:
        ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError):
        raise DefinitionError(f"batches: {zone!r} is no time zone; write an IANA name such as Europe/Berlin") from None
    return BatchWindows("day", zone, _since(since))


def hourly(since: str | date) -> BatchWindows:
    """One batch an hour in UTC, from the first hour of `since` (`YYYY-MM-DD`) on.

    Raises:
        DefinitionError: no such date.
    """
    return BatchWindows("hour", "UTC", _since(since))


def _since(since: str | date) -> date:
    if isinstance(since, date):
        return since
    try:
        return datetime.strptime(since, DAY_FORMAT).replace(tzinfo=UTC).date()
    except ValueError:
        raise DefinitionError(f"batches: since={since!r} is no date; write it as 2026-11-01") from None
