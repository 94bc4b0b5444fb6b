"""Two runs on one batch at the same time: leases are the only guard they need."""

from __future__ import annotations

from tests.ops.passes import Shop, refund
from tests.ops.workers import go_on, wait_for_stop, worker

REQUESTS = 60


def test_two_runs_at_once_make_each_effect_once(shop: Shop) -> None:
    """Two processes run the job on one batch, chunk by chunk: every request ends once, every payment is made once."""
    shop.queue({f"r{number}": refund(order=f"A{number}") for number in range(REQUESTS)})
    with worker(shop, "model", job=True, chunk=4) as one, worker(shop, "model", job=True, chunk=4) as other:
        wait_for_stop(shop, workers=2)
        go_on(shop)
        for process in (one, other):
            process.join(60)
            assert process.exitcode == 0
    assert shop.states() == {f"r{number}": "completed" for number in range(REQUESTS)}
    assert len(shop.effects()) == len(shop.calls()) == REQUESTS
    assert [run.moved > 0 for run in shop.rows("select moved from batch_runs")] == [True, True]
    assert shop.rows("select from proposals where revision > 1") == []
    shop.assert_ledger_intact()
    shop.run()
    assert len(shop.calls()) == REQUESTS
