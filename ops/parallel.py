"""Calls to the outside world: several at once where the other side takes them, while this loop keeps the lease."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

TICK = 0.5
"""Seconds after which the loop looks at its lease although no call has come back."""


def in_threads(
    call: Callable[[Item], Result], items: Sequence[Item], concurrency: int, tick: Callable[[], None]
) -> Iterator[tuple[Item, Result]]:
    """Yield each item with its result as it arrives, at most `concurrency` calls at a time.

    This thread makes no call itself: between results, and twice a second while none arrives, it calls `tick`, which
    renews what has to be renewed. What `call` raises is raised here. Once the caller stops, no further call begins.
    """
    waiting = deque(items)
    arrived: SimpleQueue[tuple[Item, Result] | BaseException] = SimpleQueue()

    def work() -> None:
        while waiting:
            try:
                item = waiting.popleft()
            except IndexError:  # another thread took the last one
                return
            try:
                arrived.put((item, call(item)))
            except BaseException as error:  # noqa: BLE001  # raised again where it is waited for
                arrived.put(error)
                return

    for _ in range(min(concurrency, len(items))):
        # A daemon, so that a call that hangs does not keep alive a process that was told to end.
        Thread(target=work, daemon=True).start()
    try:
        for _ in items:
            yield _next(arrived, tick)
            tick()
    finally:
        waiting.clear()


def in_a_thread(call: Callable[[], Result], tick: Callable[[], None]) -> Result:
    """The result of one call that may take long, while this thread calls `tick`."""
    ((_, result),) = in_threads(lambda _: call(), (None,), 1, tick)
    return result


def _next(arrived: SimpleQueue[tuple[Item, Result] | BaseException], tick: Callable[[], None]) -> tuple[Item, Result]:
    while True:
        try:
            result = arrived.get(timeout=TICK)
        except Empty:
            tick()
            continue
        if isinstance(result, BaseException):
            raise result
        return result
