"""When a batch has settled, so that its assets may be made."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

GRACE: Final = timedelta(minutes=10)
"""After a window closes: long enough for what was submitted in its last moment to be stored and advanced."""

PATIENCE: Final = timedelta(hours=24)
"""A closed batch that still has open requests is reported all the same after this time, with `open` above zero."""


def is_settled(window_end: datetime, now: datetime, open_requests: int) -> bool:
    """Whether a batch whose window ended at `window_end` is to be reported. Parked requests are not open."""
    return now >= window_end + (PATIENCE if open_requests else GRACE)
