"""Write one chunk while the next is read and judged: what the database does meanwhile costs this process nothing."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Self

BACKLOG = 2
"""Tasks that may wait or run: what ends one chunk, and never more than a lease can wait for."""


class WriteBehind:
    """Runs tasks one after the other in a thread of its own.

    What a task raises is raised here, by the next `do`, by `wait`, or at the end of the block; no task follows it.
    """

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, "write-behind")
        self._tasks: deque[Future[None]] = deque()
        self._failed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown()
        if raised is None:
            self.wait()

    def do(self, task: Callable[[], None]) -> None:
        """Put `task` behind the others, once there is room."""
        self.wait(BACKLOG - 1)
        self._tasks.append(self._pool.submit(self._run, task))

    def wait(self, left: int = 0) -> None:
        """Return once no more than `left` tasks wait or run."""
        while len(self._tasks) > left:
            self._tasks.popleft().result()

    def _run(self, task: Callable[[], None]) -> None:
        if self._failed:
            return
        try:
            task()
        except BaseException:
            self._failed = True
            raise
