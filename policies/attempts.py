"""How often a failing step is tried: counted attempts, and what never is the last of them."""

from __future__ import annotations

MAX_ATTEMPTS = 8
"""Business attempts before a request is parked: with full jitter from 30 s up to 20 min they span half an hour."""


def after_failure(used: int, *, tried: bool = True, uncertain: bool = False) -> int | None:
    """How many attempts are used up once a try failed; None: there is no further one, and a person decides.

    Where nothing was `tried` (the provider was not called) none is used up. What is `uncertain` may have happened: it
    is looked up before anybody is asked, so it is never the last; the look-up's own failure then is.
    """
    if used >= MAX_ATTEMPTS:
        return None
    if not tried:
        return used
    if used + 1 < MAX_ATTEMPTS:
        return used + 1
    return used if uncertain else None
