"""What the environment sets for runs and sensors: how long a lease lasts, and how soon a failed try is made again."""

from __future__ import annotations

import os

from policies.errors import DefinitionError


def lease_seconds() -> float:
    """FAILSAFE_LEASE_SECONDS, or else 30: a worker's death delays its requests by this much.

    A lease must outlast the provider's slowest call. Sensors judge a run by its silence with it.

    Raises:
        DefinitionError: the variable holds no number of seconds between 1 and 3600.
    """
    return _seconds("FAILSAFE_LEASE_SECONDS", 1, 3600)


def backoff_base_seconds() -> float:
    """FAILSAFE_BACKOFF_SECONDS, or else 30: before the second try a request waits at most this long.

    Before each further try it waits at most twice as long, up to 20 minutes.

    Raises:
        DefinitionError: the variable holds no number of seconds between 0.1 and 1200.
    """
    return _seconds("FAILSAFE_BACKOFF_SECONDS", 0.1, 1200)


def _seconds(variable: str, least: float, most: float) -> float:
    text = os.environ.get(variable) or "30"
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not least <= seconds <= most:  # not a number is neither
        raise DefinitionError(f"{variable}={text!r}: write seconds between {least:g} and {most:g}, such as 30")
    return seconds
