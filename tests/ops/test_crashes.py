"""Workers that die: their requests are taken back, suspects go alone, and what kills every worker ends parked."""

from __future__ import annotations

from typing import Any

import pytest

from ops.parking import MAX_LONE_CRASHES
from tests.ops import toy
from tests.ops.passes import Shop, refund


class Killer:
    """A model on which the worker dies for the requests of one order, however often."""

    deterministic = True

    def __init__(self, order: str) -> None:
        self.order = order
        self.asked: list[str] = []

    def __call__(self, request: toy.RefundRequest) -> Any:
        self.asked.append(request.order_id)
        if request.order_id == self.order:
            raise SystemExit("out of memory")
        return toy.toy_model(request)


def die(shop: Shop) -> None:
    """A run in which the worker dies, and the end of its leases."""
    with pytest.raises(SystemExit):
        shop.run()
    shop.end_leases()
    shop.age_effects()


def test_a_request_that_kills_every_worker_is_parked_and_the_others_go_on(shop: Shop) -> None:
    """A chunk dies with it once; then alone, three times, and is parked; its neighbours go on."""
    killer = Killer("bad")
    shop.define(extractor=killer)
    shop.queue({"one": refund(order="A1"), "bad": refund(order="bad"), "two": refund(order="A2")})
    for _ in range(1 + MAX_LONE_CRASHES):
        die(shop)
    assert shop.states()["bad"] == "received"
    shop.run()
    assert killer.asked.count("bad") == 1 + MAX_LONE_CRASHES
    parked = shop.request("bad")
    assert (parked.crash_count, parked.lone_crash_count) == (4, 3)
    (letter,) = shop.rows("select step, failure, closed_at from dead_letters")
    assert letter == ("extract", parked.reason, None)
    assert "3 workers died on this request alone" in parked.reason
    assert shop.states() == {"one": "completed", "bad": "dead_lettered", "two": "completed"}
    shop.assert_ledger_intact()


def test_a_crash_is_not_a_business_attempt(shop: Shop) -> None:
    """However often a worker died with a request, its own attempts are all left."""
    shop.define(extractor=Killer("A1"))
    shop.queue({"one": refund()})
    for _ in range(MAX_LONE_CRASHES):
        die(shop)
    shop.define(extractor=toy.toy_model)
    shop.run()
    crashed = shop.request("one")
    assert (crashed.state, crashed.crash_count, crashed.lone_crash_count) == ("completed", 3, 2)


class Deadly:
    """A call on which the worker dies."""

    def __init__(self) -> None:
        self.keys: list[str] = []

    def __call__(self, key: str) -> None:
        self.keys.append(key)
        raise SystemExit("segmentation fault")


def test_a_provider_that_kills_every_worker_is_called_no_more(shop: Shop) -> None:
    """Dying in the call leaves the effect unknown; it is looked up and sent again alone, three times, then parked."""
    call = Deadly()
    shop.hooked(before=call)
    shop.queue({"one": refund()})
    for _ in range(1 + MAX_LONE_CRASHES):
        die(shop)
    shop.run()
    assert shop.states() == {"one": "dead_lettered"}
    assert len(call.keys) == 1 + MAX_LONE_CRASHES
    assert len(set(call.keys)) == 1, "under one key"
    assert shop.effects() == []
    shop.assert_ledger_intact()


def test_an_effect_done_by_a_worker_that_died_is_adopted_even_after_three_deaths(shop: Shop) -> None:
    """What the provider did is found before the crashes are counted: the request ends done, not parked."""
    shop.hooked(after=Deadly())
    shop.queue({"one": refund()})
    die(shop)
    shop.execute("update requests set lone_crash_count = 3, crash_count = 4")
    shop.run()
    assert shop.states() == {"one": "completed"}
    assert len(shop.calls()) == 1


def test_a_look_up_that_kills_every_worker_is_made_no_more(shop: Shop) -> None:
    """A provider whose look-up ends the worker cannot hold the batch for ever: its request is parked."""
    look_up = Deadly()
    shop.hooked(after=Deadly(), look_up=look_up)
    shop.queue({"one": refund()})
    for _ in range(2 + MAX_LONE_CRASHES):
        die(shop)
    shop.run()
    assert shop.states() == {"one": "dead_lettered"}
    assert len(look_up.keys) == 1 + MAX_LONE_CRASHES
    assert len(shop.calls()) == 1
