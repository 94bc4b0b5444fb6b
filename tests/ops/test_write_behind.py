"""Writing behind the step that goes on."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial

import pytest

from ops.write_behind import BACKLOG, WriteBehind


def test_tasks_run_in_order_and_all_have_ended_with_the_block() -> None:
    """One at a time, in the order they were given, none left when the block ends."""
    done: list[int] = []
    with WriteBehind() as writing:
        for number in range(20):
            writing.do(partial(done.append, number))
    assert done == list(range(20))


def test_the_caller_goes_on_but_never_far_ahead() -> None:
    """What is given while there is room returns at once; beyond that the caller waits."""
    gate = threading.Event()
    given: list[int] = []

    def stand() -> None:
        gate.wait(10)

    def give() -> None:
        with WriteBehind() as writing:
            for number in range(BACKLOG + 3):
                writing.do(stand)
                given.append(number)

    giver = threading.Thread(target=give)
    giver.start()
    while len(given) < BACKLOG:
        giver.join(0.01)
    giver.join(0.2)
    assert len(given) == BACKLOG
    gate.set()
    giver.join(10)
    assert len(given) == BACKLOG + 3


def fail() -> None:
    """A task that the database refuses."""
    raise OSError("disk full")


def write(*tasks: Callable[[], None], then: Exception | None = None) -> None:
    """Give the tasks in one block, which may end by an error of its own."""
    with WriteBehind() as writing:
        for task in tasks:
            writing.do(task)
        if then is not None:
            raise then


def test_after_a_failure_nothing_more_is_written() -> None:
    """A task that fails is the last one to run, and its error is the caller's."""
    done: list[str] = []
    with pytest.raises(OSError, match="disk full"):
        write(fail, partial(done.append, "after"))
    assert done == []


def test_an_error_of_the_block_is_not_hidden_by_one_of_a_task() -> None:
    """The caller's own error goes on; what was written by then has ended."""
    with pytest.raises(KeyError):
        write(fail, then=KeyError("mine"))
