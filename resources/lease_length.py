"""How long a lease lasts: one setting for runs, which take leases, and sensors, which judge a run by its silence."""

from __future__ import annotations

import os

from policies.errors import DefinitionError

DEFAULT_SECONDS = 30.0
"""A worker's death delays its requests by this much; a lease must outlast the provider's slowest call."""


def lease_seconds() -> float:
    """FAILSAFE_LEASE_SECONDS, or else 30.

    Raises:
        DefinitionError: the variable holds no number of seconds, or less than one.
    """
    text = os.environ.get("FAILSAFE_LEASE_SECONDS") or str(DEFAULT_SECONDS)
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 1.0 <= seconds <= 3600.0:
        raise DefinitionError(f"FAILSAFE_LEASE_SECONDS={text!r}: write seconds between 1 and 3600, such as 30")
    return seconds
