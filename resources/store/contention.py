"""Trying again what the database gave up only because others were in its way."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn, ParamSpec, TypeVar

import tenacity

from policies.errors import StoreContended

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

TRIES = 5
"""A deadlock chooses one victim, so whoever tries again mostly gets through; five times in a row is no bad luck."""


def again_when_contended(work: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """`work`, tried up to five times while it fails with StoreContended.

    It must be one whole transaction and what leads to it: the database has undone everything, so nothing of it may have
    been kept elsewhere.
    """
    return tenacity.retry(
        retry=tenacity.retry_if_exception(lambda error: isinstance(error, StoreContended) and not error.tried_enough),
        retry_error_callback=_give_up,
        stop=tenacity.stop_after_attempt(TRIES),
        wait=tenacity.wait_random_exponential(multiplier=0.05, max=2),
        reraise=True,
    )(work)


def _give_up(state: tenacity.RetryCallState) -> NoReturn:
    assert state.outcome is not None
    error = state.outcome.exception()
    assert isinstance(error, StoreContended)
    error.tried_enough = True
    raise error
