"""Durations as people write them in a policy: `30m`, `12h`, `2d`."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated, Any

from pydantic import BeforeValidator

_UNITS = {"m": "minutes", "h": "hours", "d": "days"}


def parse_duration(text: str) -> timedelta:
    """A positive whole number of minutes, hours or days.

    Raises:
        ValueError: anything else, such as `0d`, `-1d` or a number without its unit.
    """
    found = re.fullmatch(r"([1-9][0-9]{0,4})([mhd])", text)
    if found is None:
        raise ValueError("write a duration such as 30m, 12h or 2d")
    return timedelta(**{_UNITS[found[2]]: int(found[1])})


def _duration(value: Any) -> Any:
    if isinstance(value, timedelta) and value > timedelta(0):
        return value
    return parse_duration(value if isinstance(value, str) else "")


Duration = Annotated[timedelta, BeforeValidator(_duration)]
"""A positive duration in a policy, and as it is in code."""
