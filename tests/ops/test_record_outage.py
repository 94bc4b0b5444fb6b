"""A trusted record service that is down: nothing is lost, nothing is executed, nobody is blamed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated

import pytest

from ops.close_batch import close_batch
from ops.extract import extract
from ops.process_batch import STEPS
from ops.validate import validate
from policies.actions import Action, Authority
from policies.attempts import MAX_ATTEMPTS
from policies.proposals import Evidence, Proposal, propose
from policies.records import Record
from resources.look_ups import MOST_IN_A_ROW
from tests.ops import toy
from tests.ops.passes import Shop, refund
from tests.ops.tills import HookedTill


class BrokenOrders(toy.Orders):
    """A record service that can be switched off."""

    def __init__(self) -> None:
        self.down = False
        self.asked = 0

    def find_many(self, keys: Iterable[str]) -> Mapping[str, Record | None]:
        self.asked += self.down
        if self.down:
            raise ConnectionError("the order service does not answer")
        return super().find_many(keys)

    def find(self, key: str) -> Record | None:
        return Record("orders", key, {"order_id": key, "address": f"{key} Road"})


@pytest.fixture
def orders(shop: Shop) -> BrokenOrders:
    """The shop's record service."""
    orders = BrokenOrders()
    shop.define(records={"orders": orders})
    return orders


class Ship(Action, name="order.ship", reversible=False):
    """Takes its address from the order's record, which the model never states."""

    order_id: Annotated[str, Authority(record="orders")]
    address: Annotated[str, Authority(record="orders")]


AUTOMATIC = """
version: "1"
mode: live
decisions: {low: auto, medium: refuse, high: refuse, critical: refuse}
"""


def test_a_proposal_that_is_filled_from_a_record_waits_for_it(shop: Shop, orders: BrokenOrders) -> None:
    """It cannot be sealed while the service is down: it waits without an attempt and is asked for anew much later."""
    asked: list[str] = []

    def model(request: toy.RefundRequest) -> Proposal:
        asked.append(request.order_id)
        evidence = [Evidence("order_id", "order_id", request.order_id)]
        return Proposal((propose(Ship, order_id=request.order_id, evidence=evidence),))

    shop.set_policy(AUTOMATIC)
    shop.define(actions={Ship: HookedTill(file=str(shop.till))}, extractor=model)
    shop.queue({"one": refund()})
    orders.down = True
    shop.run()
    waiting = shop.request("one")
    assert (waiting.state, waiting.attempts, waiting.reason) == (
        "received",
        0,
        "a record look-up failed: ConnectionError",
    )
    assert (waiting.next_eligible_at - waiting.received_at).total_seconds() > 50
    shop.run()
    assert asked == ["A1"], "no model is asked in vain while it waits"
    shop.run_again(MAX_ATTEMPTS)
    assert shop.states() == {"one": "received"}
    orders.down = False
    shop.run_again()
    assert shop.states() == {"one": "completed"}
    assert len(shop.calls("order.ship")) == 1


def test_a_record_service_that_is_down_before_validation_loses_nothing(shop: Shop, orders: BrokenOrders) -> None:
    """A proposal that states all of its parameters is sealed, and waits for its records without a second question."""
    shop.queue({"one": refund()})
    orders.down = True
    shop.run()
    shop.run_again()
    assert shop.states() == {"one": "proposal_ready"}
    assert shop.count("findings") == 0
    orders.down = False
    shop.run()
    assert shop.states() == {"one": "completed"}


def test_a_record_service_that_is_down_before_an_effect_executes_nothing(shop: Shop, orders: BrokenOrders) -> None:
    """What cannot be rechecked is not executed now; it waits without an attempt and is paid once later."""
    shop.queue({"one": refund("80.00")})
    shop.run()
    shop.vote("one")
    orders.down = True
    shop.run()
    shop.run_again(MAX_ATTEMPTS)
    assert shop.states() == {"one": "executing"}
    assert shop.request("one").reason == "a record look-up failed: ConnectionError"
    assert shop.calls() == []
    assert shop.request("one").attempts == 0
    orders.down = False
    shop.run_again()
    assert shop.states() == {"one": "completed"}
    assert len(shop.calls()) == 1


def test_an_outage_keeps_no_run_busy(shop: Shop, orders: BrokenOrders) -> None:
    """A run that finds the service down ends after one look, and counts as idle, so that the next one waits longer."""
    shop.queue({"one": refund()})
    shop.run(extract)
    orders.down = True
    opened = shop.open()
    close_batch(opened, STEPS)
    assert orders.asked == 1
    assert shop.row("select idle_runs from batches").idle_runs == 1


def test_a_service_that_is_down_is_not_asked_for_each_of_many(shop: Shop, orders: BrokenOrders) -> None:
    """A page of proposals finds out by a few calls, keeps nothing against any of them, and goes on once it is back."""
    shop.queue({f"no{number}": refund(order=f"A{number}") for number in range(100)})
    shop.run(extract)
    orders.down = True
    counts = shop.run(validate)
    assert orders.asked == MOST_IN_A_ROW
    assert counts == {"records_unavailable": 100}
    assert {tuple(row) for row in shop.rows("select attempts, reason, state from requests")} == {
        (0, None, "proposal_ready")
    }
    orders.down = False
    assert shop.run(validate)["passed"] == 100
