"""Classes of errors, and how long to wait before trying again: durations, which the database adds to its own clock."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from enum import StrEnum


class ErrorClass(StrEnum):
    """What an error says about the effect."""

    TRANSIENT = "transient"  # certainly not done; the same may work later
    PERMANENT = "permanent"  # certainly not done; never retried unchanged
    UNCERTAIN = "uncertain"  # may have happened; looked up before anything else


def backoff(attempt: int, *, base: timedelta, cap: timedelta, uniform: float) -> timedelta:
    """Full jitter: a share of the doubled base, at most `cap`.

    `attempt` counts from 1; `uniform` is a random number from 0 up to 1, drawn by the caller.

    Raises:
        ValueError: an attempt below 1 or a share outside [0, 1).
    """
    if attempt < 1 or not 0 <= uniform < 1:
        raise ValueError("attempt counts from 1 and uniform lies in [0, 1)")
    doublings = min(attempt - 1, 62)  # more only overflows: any base is far beyond any cap by then
    ceiling = min(cap.total_seconds(), base.total_seconds() * 2.0**doublings)
    return timedelta(seconds=ceiling * uniform)


_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_TIME = r"(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2}):(?P<second>[0-9]{2})"
_MONTH = rf"(?P<month>{'|'.join(_MONTHS)})"
_DATES = tuple(
    re.compile(form)
    for form in (
        rf"[A-Z][a-z]{{2}}, (?P<day>[0-9]{{2}}) {_MONTH} (?P<year>[0-9]{{4}}) {_TIME} GMT",  # IMF-fixdate
        rf"[A-Z][a-z]{{5,8}}, (?P<day>[0-9]{{2}})-{_MONTH}-(?P<year>[0-9]{{2}}) {_TIME} GMT",  # RFC 850
        rf"[A-Z][a-z]{{2}} {_MONTH} (?P<day>[0-9 ][0-9]) {_TIME} (?P<year>[0-9]{{4}})",  # asctime
    )
)
_LONGEST = timedelta(days=365)


def retry_after(header: str, date_header: str | None) -> timedelta | None:
    """The wait that a `Retry-After` header asks for: seconds, or an HTTP date counted from the response's own `Date`.

    None where the header cannot be read, or is a date and the response has no readable `Date`: no clock of ours is
    compared with the provider's. A date in the past is no wait; longer than a year is cut to a year.
    """
    text = header.strip()
    if re.fullmatch(r"[0-9]{1,18}", text):
        return min(timedelta(seconds=min(int(text), 10**9)), _LONGEST)
    at, now = _http_date(text), _http_date(date_header.strip()) if date_header is not None else None
    if at is None or now is None:
        return None
    return min(max(at - now, timedelta(0)), _LONGEST)


def _http_date(text: str) -> datetime | None:
    found = next((match for form in _DATES if (match := form.fullmatch(text))), None)
    if found is None:
        return None
    year = int(found["year"])
    try:
        return datetime(
            year + 2000 if year < 100 else year,  # two digits mean this century: no provider dates back before it
            _MONTHS.index(found["month"]) + 1,
            int(found["day"]),
            int(found["hour"]),
            int(found["minute"]),
            min(int(found["second"]), 59),  # a leap second
            tzinfo=UTC,
        )
    except ValueError:
        return None
