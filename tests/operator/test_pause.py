"""The pause switch: nothing in its scope starts, what it comes too late for is named, and resuming brings all back."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Thread

import pytest
import sqlalchemy as sa

from ops.extract import extract
from ops.process_batch import STEPS
from policies.errors import NotPermitted, RequestRefused
from resources.store.effects import start_effects
from resources.store.engine import Duty, engine_for
from resources.store.pauses import Reach, Scope, pauses
from tests.operator.desk import Desk
from tests.ops import toy
from tests.ops.passes import Shop, refund
from tests.ops.workers import go_on, wait_for_lock, wait_for_stop, worker

PAUSES = [
    (Scope.EVERYTHING, "*"),
    (Scope.WORKFLOW, "refunds"),
    (Scope.ACTION_TYPE, "order.refund"),
    (Scope.PROVIDER, "HookedTill"),
]


@pytest.mark.parametrize(("scope", "name"), PAUSES)
def test_each_scope_stops_starts_and_resuming_brings_them_back(shop: Shop, desk: Desk, scope: Scope, name: str) -> None:
    """What is paused waits without using an attempt, is counted, and is due at once when the pause is lifted."""
    shop.queue({"one": refund(), "two": refund(order="A2")})
    shop.run(extract)
    desk.pause(scope, name)
    shop.run()
    shop.run_again(2)
    assert shop.calls() == []
    assert shop.states() == {"one": "executing", "two": "executing"}
    assert {(row.attempts, row.reason) for row in shop.rows("select attempts, reason from requests")} == {
        (0, "not started: paused")
    }
    [found] = pauses(shop.url)
    assert (found.scope, found.name, found.paused_by, found.reach) == (scope, name, "olga", Reach(2, []))
    assert desk.resume(scope, name)
    assert not desk.resume(scope, name)
    shop.run()
    assert shop.states() == {"one": "completed", "two": "completed"}
    assert len(shop.calls()) == 2
    shop.assert_ledger_intact()


@pytest.mark.parametrize(("scope", "name"), PAUSES)
def test_what_is_in_flight_is_named(shop: Shop, desk: Desk, scope: Scope, name: str) -> None:
    """An effect that was started before cannot be stopped any more: the pause says so, and holds back the rest."""
    reached: list[Reach] = []

    def pause(key: str) -> None:
        if key.endswith("order.refund:1") and not reached:
            reached.append(desk.pause(scope, name))

    shop.lease_seconds = 30.0
    shop.hooked(before=pause)
    shop.queue({"one": refund(say="saga")})
    shop.run()
    [reach] = reached
    [key] = shop.calls()
    later = scope is not Scope.ACTION_TYPE  # the refund itself is under way, what follows is of another type
    assert reach == Reach(int(later), [key])
    assert shop.states() == {"one": "executing" if later else "completed"}
    assert len(shop.calls("customer.tell")) == (not later)


@pytest.mark.parametrize(
    ("scope", "name"),
    [
        (Scope.WORKFLOW, "refund"),
        (Scope.ACTION_TYPE, "order.refunds"),
        (Scope.PROVIDER, "hookedtill"),
        (Scope.EVERYTHING, "refunds"),
        (Scope.WORKFLOW, "*"),
    ],
)
def test_a_name_that_means_nothing_pauses_nothing(shop: Shop, desk: Desk, scope: Scope, name: str) -> None:
    """It fails loudly: whoever gave it would believe that something stopped."""
    shop.queue({"one": refund()})
    shop.run(extract)
    with pytest.raises(RequestRefused, match="nothing was paused"):
        desk.pause(scope, name)
    assert pauses(shop.url) == []
    shop.run()
    assert shop.states() == {"one": "completed"}


def compensating(shop: Shop) -> None:
    """The reservation is done, the refund refused, the undo still to come."""
    toy.set_mood(shop.till, "refuse", "order.refund")
    shop.queue({"one": refund(say="saga")})
    opened = shop.open()
    for step in STEPS[:-1]:
        opened.carry_out(step)
    assert shop.states() == {"one": "compensating"}


@pytest.mark.parametrize(
    ("scope", "name"),
    [*PAUSES[:2], PAUSES[3], (Scope.ACTION_TYPE, "stock.unreserve"), (Scope.ACTION_TYPE, "stock.reserve")],
)
def test_compensation_is_held_too(shop: Shop, desk: Desk, scope: Scope, name: str) -> None:
    """An undo is an effect like any other; it goes by its own type and by that of what it undoes."""
    compensating(shop)
    assert desk.pause(scope, name) == Reach(1, [])
    shop.run_again(2)
    assert (shop.states(), shop.calls("stock.unreserve")) == ({"one": "compensating"}, [])
    assert shop.request("one").attempts == 0
    desk.resume(scope, name)
    shop.run()
    assert (shop.states(), len(shop.calls("stock.unreserve"))) == ({"one": "compensated"}, 1)


def test_a_compensation_in_flight_is_named(shop: Shop, desk: Desk) -> None:
    """Also by the type of what it undoes."""
    reached: list[Reach] = []
    compensating(shop)
    shop.hooked(before=lambda _key: reached.append(desk.pause(Scope.ACTION_TYPE, "stock.reserve")))
    shop.run()
    assert reached == [Reach(0, shop.calls("stock.unreserve"))]


def test_other_work_goes_on(shop: Shop, desk: Desk) -> None:
    """A pause of one action type holds back no other."""
    shop.queue({"one": refund(say="saga")})
    shop.run(extract)
    desk.pause(Scope.ACTION_TYPE, "customer.tell")
    shop.run()
    assert (len(shop.calls()), shop.calls("customer.tell")) == (1, [])


def test_two_pauses_hold_until_both_are_lifted(shop: Shop, desk: Desk) -> None:
    """Resuming one leaves the other in force."""
    shop.queue({"one": refund()})
    shop.run(extract)
    desk.pause(Scope.EVERYTHING)
    desk.pause(Scope.WORKFLOW, "refunds")
    shop.run()
    desk.resume(Scope.EVERYTHING)
    shop.run_again()
    assert shop.calls() == []
    desk.resume(Scope.WORKFLOW, "refunds")
    shop.run()
    assert len(shop.calls()) == 1


def test_only_an_operator_pauses_and_resumes(shop: Shop, desk: Desk) -> None:
    """A person without that role is refused."""
    shop.queue({"one": refund()})
    lead = desk.signed_in("lena", ["lead"])
    with pytest.raises(NotPermitted, match="lena is no operator"):
        desk.pause(Scope.EVERYTHING, as_=lead)
    assert pauses(shop.url) == []


def test_a_start_that_committed_first_may_be_sent_and_none_after(shop: Shop, desk: Desk) -> None:
    """A pause set between recount and commit of a start waits for it, and then names it as in flight."""
    shop.queue({"one": refund(), "two": refund(order="A2")})
    shop.run(extract)
    desk.pause(Scope.EVERYTHING)
    shop.run()
    desk.resume(Scope.EVERYTHING)
    lease = desk.claimed()
    first, second = desk.first_start("one"), desk.first_start("two")
    with engine_for(Duty.WORKER, shop.url).connect() as worker_, ThreadPoolExecutor(1) as thread:
        [started] = start_effects(worker_, lease.token, "HookedTill", [first])
        assert started.refusal is None
        pausing = thread.submit(desk.pause, Scope.EVERYTHING)
        wait_for_lock(shop)
        assert not pausing.done()
        worker_.commit()
        assert pausing.result() == Reach(1, [started.key])
    assert desk.start(lease, second).refusal == "paused"


def test_a_start_that_waits_for_the_pause_does_not_start(shop: Shop, desk: Desk) -> None:
    """It reads the pauses after it got the lock, not before."""
    shop.queue({"one": refund()})
    shop.run(extract)
    desk.pause(Scope.WORKFLOW, "refunds")
    shop.run()
    desk.resume(Scope.WORKFLOW, "refunds")
    lease, start = desk.claimed(), desk.first_start("one")
    with shop.connect() as pausing, ThreadPoolExecutor(1) as thread:
        values = {"session": desk.session.secret}
        pausing.execute(sa.text("select pause_work(:session, 'everything', '*', 'stop')"), values)
        starting = thread.submit(desk.start, lease, start)
        wait_for_lock(shop)
        pausing.commit()
        assert starting.result().refusal == "paused"


def test_a_pause_amid_a_running_worker_stops_it(shop: Shop, desk: Desk) -> None:
    """Set while a worker process sends: by the database's clock no effect starts after it."""
    shop.queue({f"r{number:02}": refund(order=f"A{number}") for number in range(40)})
    with worker(shop, "before", chunk=4) as process:
        wait_for_stop(shop)
        reached: list[Reach] = []
        pausing = Thread(target=lambda: reached.append(desk.pause(Scope.EVERYTHING)))
        go_on(shop)
        pausing.start()
        process.join(60)
        pausing.join()
    [reach] = reached
    after = "select from effects e, pauses p where e.started_at > p.paused_at"
    assert shop.rows(after) == []
    assert 0 < len(shop.calls()) < 40
    assert len(shop.calls()) + reach.held_back == 40
    assert set(reach.in_flight) <= set(shop.calls())
