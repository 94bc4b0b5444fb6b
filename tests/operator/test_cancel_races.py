"""Cancel against execute, both at once: what is cancelled has no effect, and what has an effect is not cancelled."""

from __future__ import annotations

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from ops.assess import assess
from ops.extract import extract
from ops.validate import validate
from policies.errors import NotPossibleNow
from resources.store.effects import Start
from resources.store.operator import Cancelled, cancel
from tests.operator.desk import Desk
from tests.ops.passes import Shop, refund
from tests.ops.workers import go_on, wait_for_stop, worker

DUELS = 120
REQUESTS = 60


def released(shop: Shop, requests: int, **more: str) -> list[str]:
    """So many requests that may start now."""
    names = [f"r{number:03}" for number in range(requests)]
    shop.queue({name: refund(order=f"A{name}", **more) for name in names})
    shop.run(extract, validate, assess)
    assert set(shop.states().values()) == {"executing"}
    return names


def test_of_a_start_and_a_cancellation_one_wins(shop: Shop, desk: Desk) -> None:
    """Sent off together on connections of their own, again and again: it starts, or it is cancelled, never both."""
    shop.lease_seconds = 300.0
    starts = [desk.first_start(name) for name in released(shop, DUELS)]
    lease = desk.claimed()
    barrier = Barrier(2)

    def begin(start: Start, wait: float) -> bool:
        barrier.wait()
        time.sleep(max(wait, 0))
        return desk.start(lease, start).refusal is None

    def stop(start: Start, wait: float) -> bool:
        barrier.wait()
        time.sleep(max(-wait, 0))
        return cancel(shop.url, desk.session, start.request_id, "changed their mind") is Cancelled.CANCELLED

    winners: Counter[bool] = Counter()
    wait = 0.0
    with ThreadPoolExecutor(2) as threads:
        for start in starts:
            beginning, stopping = threads.submit(begin, start, wait), threads.submit(stop, start, wait)
            started, cancelled = beginning.result(), stopping.result()
            assert started is not cancelled
            effects = shop.rows("select state from effects where request_id = :id", id=start.request_id)
            assert effects == ([("in_flight",)] if started else [])
            winners[started] += 1
            wait += 0.0005 if started else -0.0005  # who won last begins later next, so that it stays a close race
    assert min(winners[True], winners[False]) > DUELS / 5, winners


def test_while_a_worker_executes_everything_is_cancelled(shop: Shop, desk: Desk) -> None:
    """Cancelled from the far end while a worker process comes from the near one: the till tells what each came to."""
    names = released(shop, REQUESTS, say="saga")
    answers: dict[str, Cancelled | str] = {}

    def stop(name: str) -> None:
        try:
            answers[name] = desk.cancel(name)
        except NotPossibleNow as error:
            answers[name] = str(error)

    with worker(shop, "before", chunk=4) as process:
        wait_for_stop(shop)
        go_on(shop)
        with ThreadPoolExecutor(3) as threads:
            list(threads.map(stop, reversed(names)))
        process.join(60)
        assert process.exitcode == 0
    shop.run_again(3)

    ends = shop.states()
    done = {kind: Counter(key.split(":")[1] for key in shop.calls(kind)) for kind in KINDS}
    for name in names:
        request_id = str(desk.id(name))
        calls = tuple(done[kind][request_id] for kind in KINDS)
        assert (ends[name], calls) in ENDS, (name, answers[name])
        assert (answers[name] is Cancelled.CANCELLED) == (ends[name] == "cancelled")
        if answers[name] is Cancelled.COMPENSATING:
            assert ends[name] == "compensated"
    assert {"cancelled", "completed"} <= set(ends.values())
    shop.assert_ledger_intact()


KINDS = ("stock.reserve", "order.refund", "customer.tell", "stock.unreserve")
ENDS = [("cancelled", (0, 0, 0, 0)), ("compensated", (1, 0, 0, 1)), ("completed", (1, 1, 1, 0))]
