"""How soon a failed try is made again: one setting for the runs."""

from __future__ import annotations

import os

from policies.errors import DefinitionError

DEFAULT_SECONDS = 30.0
"""Before the second try a request waits at most this long; before each further one twice as long, up to 20 minutes."""


def backoff_base_seconds() -> float:
    """FAILSAFE_BACKOFF_SECONDS, or else 30.

    Raises:
        DefinitionError: the variable holds no number of seconds, or none that makes sense.
    """
    text = os.environ.get("FAILSAFE_BACKOFF_SECONDS") or str(DEFAULT_SECONDS)
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0.1 <= seconds <= 1200.0:
        raise DefinitionError(f"FAILSAFE_BACKOFF_SECONDS={text!r}: write seconds between 0.1 and 1200, such as 30")
    return seconds
