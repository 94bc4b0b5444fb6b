"""A worker that the database chooses as the victim of a deadlock goes on; no run fails for it."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa

from ops.assess import assess
from ops.batch import Batch, Counts
from ops.execute import execute
from ops.extract import extract
from ops.validate import validate
from tests.ops.passes import Shop, refund


def blocked(shop: Shop) -> None:
    """Wait until somebody waits for a row."""
    deadline = time.monotonic() + 20
    waiting = "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
    while not shop.rows(waiting):
        assert time.monotonic() < deadline, "nobody waits"
        time.sleep(0.02)


@pytest.mark.parametrize(("before", "step"), [((extract, validate, assess), execute), ((), extract)])
def test_the_victim_of_a_deadlock_tries_again(
    shop: Shop, before: tuple[Callable[[Batch], Counts], ...], step: Callable[[Batch], Counts]
) -> None:
    """The step loses everything of its transaction, begins it anew and ends as if nothing had been."""
    shop.queue({"one": refund()})
    if before:
        shop.run(*before)
    request = shop.request("one").id
    with shop.connect() as other, ThreadPoolExecutor(1) as pool:
        other.execute(sa.text("set deadlock_timeout = '60s'"))  # so that it is the worker that looks, and gives way
        other.execute(sa.text("select from audit_heads where stream = :s for update"), {"s": f"request:{request}"})
        running = pool.submit(shop.run, step)
        blocked(shop)
        other.execute(sa.text("select from requests where id = :id for update"), {"id": request})
        assert not running.done(), "it gave way, and is not through"
        other.rollback()
        running.result(timeout=30)
    shop.run()
    assert shop.states() == {"one": "completed"}
    assert len(shop.calls()) == len(shop.effects()) == 1
    assert shop.request("one").crash_count == 0
    assert shop.request("one").attempts == 0
    shop.assert_ledger_intact()
