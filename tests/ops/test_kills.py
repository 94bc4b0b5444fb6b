"""A worker killed at any moment leaves what the next run finishes: each effect once, by the provider's own ledger."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import sqlalchemy as sa

from tests.ops.passes import Shop, refund
from tests.ops.workers import go_on, kill, wait_for_lock, wait_for_stop, worker

ACTIONS = ("stock.reserve", "order.refund", "customer.tell")


def killed_at(shop: Shop, moment: str) -> None:
    """Kill a worker that stands at a moment of the refund, or of the model's call."""
    with worker(shop, moment):
        wait_for_stop(shop)


def killed_before_the_start_commits(shop: Shop) -> None:
    """Kill a worker inside `start_effects`, which waits for a lock."""
    with shop.connect() as connection:
        connection.execute(sa.text("select from principals for update"))
        with worker(shop) as process:
            wait_for_lock(shop)
            kill(process)


def killed_before_the_outcome_commits(shop: Shop) -> None:
    """Kill a worker that was answered by the provider while it records that."""
    with worker(shop, "after") as process:
        wait_for_stop(shop)
        with shop.connect() as connection:
            connection.execute(sa.text("select from requests for update"))
            go_on(shop)
            wait_for_lock(shop)
            kill(process)


def killed_while_looking_up(shop: Shop) -> None:
    """Kill one worker after the effect, and the next one while it looks the effect up."""
    killed_at(shop, "after")
    shop.end_leases()
    killed_at(shop, "look_up")


MOMENTS: dict[str, Callable[[Shop], None]] = {
    "while the model is asked": lambda shop: killed_at(shop, "model"),
    "before the start commits": killed_before_the_start_commits,
    "after the start, before the call": lambda shop: killed_at(shop, "before"),
    "after the call, before the answer": lambda shop: killed_at(shop, "after"),
    "before the outcome commits": killed_before_the_outcome_commits,
    "while looking up": killed_while_looking_up,
}


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_worker_killed_at_any_moment_leaves_each_effect_once(shop: Shop, moment: str) -> None:
    """The next run takes the request back, learns what became of it, and finishes without a second call."""
    shop.queue({"one": refund("30.00", say="saga")})
    MOMENTS[moment](shop)
    shop.end_leases()
    shop.age_effects()
    shop.run()
    shop.run()
    assert shop.states() == {"one": "completed"}
    for action in ACTIONS:
        assert len(shop.effects(action)) == len(shop.calls(action)) == 1, action
    assert shop.request("one").crash_count == (2 if moment == "while looking up" else 1)
    assert shop.rows("select state, count(*) from effects group by 1") == [("done", 3)]
    shop.assert_ledger_intact()


def test_a_worker_that_wakes_up_late_changes_nothing(shop: Shop) -> None:
    """Stopped in a call for longer than its lease while others finished the request, it only bears witness."""
    shop.queue({"one": refund("30.00", say="saga")})
    with worker(shop, "after") as process:
        wait_for_stop(shop)
        shop.end_leases()
        shop.age_effects()
        shop.run()
        assert shop.states() == {"one": "completed"}
        before = shop.request("one"), shop.rows("select * from effects order by ordinal")
        go_on(shop)
        process.join(30)
        assert process.exitcode == 0
    assert (shop.request("one"), shop.rows("select * from effects order by ordinal")) == before
    assert shop.events("one")[-1] == "effect.late_report"
    for action in ACTIONS:
        assert len(shop.effects(action)) == len(shop.calls(action)) == 1, action
    shop.assert_ledger_intact()
