"""Pages are templates that escape everything they are given; a name that was not given is an error, never nothing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from policies.redaction import visible

HERE = Path(__file__).parent
STATIC = HERE / "static"


def render(template: str, **values: Any) -> str:
    """The page or part of a page in templates/."""
    return _environment().get_template(template).render(values)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"shown": shown, "instant": instant, "duration": duration, "until": until}
    return environment


def shown(value: object) -> str:
    """A text that others wrote, or a value of ours, with nothing hidden in it."""
    return "" if value is None else visible(str(value))


def instant(value: datetime) -> str:
    """An instant as it is compared across a team: UTC, said so."""
    return f"{value.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def until(value: datetime) -> str:
    """How long from now, or how long ago."""
    left = value - datetime.now(UTC)
    return f"in {duration(left)}" if left > timedelta(0) else f"{duration(-left)} ago"


def duration(value: timedelta | int) -> str:
    """A duration in its two largest units."""
    seconds = int(value.total_seconds()) if isinstance(value, timedelta) else value
    parts = []
    for unit, size in (("day", 86_400), ("hour", 3_600), ("minute", 60), ("second", 1)):
        count, seconds = divmod(seconds, size)
        if count:
            parts.append(f"{count} {unit}{'s' if count > 1 else ''}")
    return " ".join(parts[:2]) or "0 seconds"
