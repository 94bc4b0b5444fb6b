"""How often one may try to sign in.

Tokens have 244 random bits, so nobody guesses one: the limit is there so that trying costs the database nothing. It is
kept in this process, by the client's address; each desk process counts for itself, and a restart forgets.
"""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Final

FAILURES: Final = 10
WINDOW: Final = 60.0
"""Ten failures in a minute from one address; then it waits until the oldest is a minute old."""

DELAY: Final = 0.5
"""Seconds that every refusal takes at least, whatever its reason, so that its duration says nothing."""

MAX_ADDRESSES: Final = 10_000
"""Addresses remembered; the one that failed longest ago is forgotten first."""


class SignInLimit:
    """Remembers when sign-ins failed."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failures: OrderedDict[str, deque[float]] = OrderedDict()

    def wait(self, address: str) -> float:
        """Seconds until this address may try again; 0 if it may now."""
        failures = self._failures.get(address)
        if failures is None:
            return 0.0
        now = self._clock()
        while failures and failures[0] <= now - WINDOW:
            failures.popleft()
        if not failures:
            del self._failures[address]
        return failures[0] + WINDOW - now if len(failures) >= FAILURES else 0.0

    def failed(self, address: str) -> None:
        """Count a failure."""
        self._failures.setdefault(address, deque(maxlen=FAILURES)).append(self._clock())
        self._failures.move_to_end(address)
        if len(self._failures) > MAX_ADDRESSES:
            self._failures.popitem(last=False)
