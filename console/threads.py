"""The threads in which the web server talks to the database."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar, TypeVarTuple

import anyio.to_thread
from starlette.requests import Request

AT_ONCE: Final = 10
"""Requests that talk to the database at once: fewer than the pool of one duty has connections, so none waits for it."""

Answer = TypeVar("Answer")
Arguments = TypeVarTuple("Arguments")


async def in_thread(request: Request, function: Callable[[*Arguments], Answer], *arguments: *Arguments) -> Answer:
    """The answer of `function`, called in one of the application's threads."""
    return await anyio.to_thread.run_sync(function, *arguments, limiter=request.app.state.threads)
