"""A trusted record service that fails for one key only: who chose that key waits, and nobody else."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated

import pytest

from ops import rechecking
from ops.execute import execute
from ops.extract import extract
from ops.validate import validate
from policies.actions import Action, Authority
from policies.attempts import MAX_ATTEMPTS
from policies.proposals import Evidence, Proposal, propose
from policies.records import Record
from resources.look_ups import MOST_AFTER_AN_ANSWER, PARTS
from tests.ops import toy
from tests.ops.passes import Shop, refund
from tests.ops.tills import HookedTill

ALONE = "the look-up in orders by order_id fails for this alone: RuntimeError"


def broken() -> None:
    """What the service does for a key that it cannot answer for."""
    raise RuntimeError("500 for Z9")


class PartlyBrokenOrders(toy.Orders):
    """A record service that does something before it answers for some keys, or for all of them."""

    def __init__(self) -> None:
        self.for_key: dict[str, Callable[[], None]] = {}
        self.down: type[Exception] | None = None

    def find(self, key: str) -> Record | None:
        if self.down is not None:
            raise self.down
        self.for_key.get(key, lambda: None)()
        return Record("orders", key, {"order_id": key, "address": f"{key} Road"})


@pytest.fixture
def orders(shop: Shop) -> PartlyBrokenOrders:
    """The shop's record service."""
    orders = PartlyBrokenOrders()
    shop.define(records={"orders": orders})
    return orders


def assert_given_up(shop: Shop, operation_id: str, step: str) -> None:
    """The request is a case of its own, which names the service and the kind of key, but no key."""
    parked = shop.request(operation_id)
    assert (parked.state, parked.reason) == ("dead_lettered", f"{ALONE} (attempt {MAX_ATTEMPTS} of {MAX_ATTEMPTS})")
    case = shop.row("select step from dead_letters where request_id = :id", id=parked.id)
    assert case.step == step
    shop.assert_ledger_intact()


def test_one_key_holds_up_no_other_and_ends_as_a_case(shop: Shop, orders: PartlyBrokenOrders) -> None:
    """The others of its page go on in the same pass; it is tried so many times, also after they have left."""
    orders.for_key["Z9"] = broken
    shop.queue({"bad": refund(order="Z9"), "good": refund(order="A2"), "also good": refund(order="A3")})
    shop.run()
    assert shop.states() == {"bad": "proposal_ready", "good": "completed", "also good": "completed"}
    assert (shop.request("bad").attempts, shop.request("bad").reason) == (1, ALONE)
    shop.run()
    assert shop.request("bad").attempts == 1, "it waits before it is tried again"
    shop.run_again(MAX_ATTEMPTS - 2)
    assert shop.states()["bad"] == "proposal_ready"
    shop.run_again()
    assert_given_up(shop, "bad", "validate")


def test_many_keys_hold_up_no_other(shop: Shop, orders: PartlyBrokenOrders) -> None:
    """A submitter who sends half of a page does not keep the other half waiting, wherever in it his keys stand."""
    orders.for_key |= {f"A{number:02}": broken for number in range(20)}
    shop.queue({f"no{number:02}": refund(order=f"A{number:02}") for number in range(40)})
    shop.run_again(20)
    states = shop.states()
    assert {states[f"no{number:02}"] for number in range(20)} == {"dead_lettered"}
    assert {states[f"no{number:02}"] for number in range(20, 40)} == {"completed"}


def test_a_key_that_can_be_looked_up_again_goes_on(shop: Shop, orders: PartlyBrokenOrders) -> None:
    """What failed for a while costs time and nothing else."""
    orders.for_key["Z9"] = broken
    shop.queue({"bad": refund(order="Z9"), "good": refund(order="A2")})
    shop.run_again(3)
    assert shop.request("bad").attempts == 3
    orders.for_key.clear()
    shop.run_again()
    assert set(shop.states().values()) == {"completed"}


@pytest.mark.parametrize(("error", "company"), [(RuntimeError, True), (ConnectionError, False)])
def test_an_outage_is_not_held_against_what_failed_alone(
    shop: Shop, orders: PartlyBrokenOrders, error: type[Exception], company: bool
) -> None:
    """Once the service answers nobody, or fails otherwise than it did, that is no attempt of the suspect either."""
    orders.for_key["Z9"] = broken
    shop.queue({"bad": refund(order="Z9"), "good": refund(order="A2")})
    shop.run()
    orders.down = error
    if company:
        shop.queue({"new": refund(order="A3")})
    shop.run_again(MAX_ATTEMPTS)
    assert (shop.request("bad").state, shop.request("bad").attempts) == ("proposal_ready", 1)
    orders.down = None
    orders.for_key.clear()
    shop.run_again()
    assert set(shop.states().values()) == {"completed"}


class DyingOrders(toy.Orders):
    """A record service that fails, answers once, and then no more."""

    def __init__(self) -> None:
        self.answers = [False, True]

    def find_many(self, keys: Iterable[str]) -> Mapping[str, Record | None]:
        if self.answers and self.answers.pop(0):
            return super().find_many(keys)
        raise ConnectionError


def test_an_outage_that_begins_meanwhile_blames_few(shop: Shop) -> None:
    """Only what was asked for alone is suspected; the rest waits without an attempt, as in any outage."""
    shop.define(records={"orders": DyingOrders()})
    shop.queue({f"no{number}": refund(order=f"A{number}") for number in range(200)})
    counts = shop.run(extract, validate)
    assert counts["passed"] == 200 // PARTS
    suspected = shop.count("requests where attempts = 1")
    assert 0 < suspected < MOST_AFTER_AN_ANSWER
    assert counts["postponed"] == suspected
    assert counts["records_unavailable"] == 200 - 200 // PARTS - suspected


def test_a_try_that_another_run_counted_is_not_counted_again(shop: Shop, orders: PartlyBrokenOrders) -> None:
    """Two runs that look at one page at a time blame a request once."""

    def counted_elsewhere() -> None:
        shop.execute(
            "update requests set attempts = 7, next_eligible_at = clock_timestamp() + interval '1 h'"
            " where operation_id = 'bad'"
        )
        broken()

    orders.for_key["Z9"] = counted_elsewhere
    shop.queue({"bad": refund(order="Z9"), "good": refund(order="A2")})
    shop.run(extract, validate)
    assert (shop.request("bad").state, shop.request("bad").attempts) == ("proposal_ready", 7)


def test_what_another_run_validated_meanwhile_is_not_blamed(shop: Shop, orders: PartlyBrokenOrders) -> None:
    """It did not need this look any more."""

    def validated_elsewhere() -> None:
        del orders.for_key["Z9"]
        shop.run(validate)
        orders.for_key["Z9"] = broken
        broken()

    orders.for_key["Z9"] = validated_elsewhere
    shop.queue({"bad": refund(order="Z9"), "good": refund(order="A2")})
    shop.run(extract, validate)
    assert shop.count("findings") == 2
    assert (shop.request("bad").attempts, shop.request("bad").reason) == (0, None)


class Ship(Action, name="order.ship", reversible=False):
    """Takes its address from the order's record, which the model never states."""

    order_id: Annotated[str, Authority(record="orders")]
    address: Annotated[str, Authority(record="orders")]


def test_one_key_to_fill_from_holds_up_no_other(shop: Shop, orders: PartlyBrokenOrders) -> None:
    """What is sealed with values of its record is put off alone, and given up like anything else."""

    def model(request: toy.RefundRequest) -> Proposal:
        evidence = [Evidence("order_id", "order_id", request.order_id)]
        return Proposal((propose(Ship, order_id=request.order_id, evidence=evidence),))

    shop.set_policy('version: "1"\nmode: live\ndecisions: {low: auto, medium: refuse, high: refuse, critical: refuse}')
    shop.define(actions={Ship: HookedTill(file=str(shop.till))}, extractor=model)
    orders.for_key["Z9"] = broken
    shop.queue({"bad": refund(order="Z9"), "good": refund(order="A2")})
    shop.run()
    assert shop.states() == {"bad": "received", "good": "completed"}
    assert (shop.request("bad").attempts, shop.request("bad").reason) == (1, ALONE)
    shop.run_again(MAX_ATTEMPTS - 1)
    assert_given_up(shop, "bad", "extract")


def approved(shop: Shop) -> None:
    """Two requests are approved, one of which rests on what will break."""
    shop.queue({"bad": refund("80.00", order="Z9"), "good": refund("80.00", order="A2")})
    shop.run()
    shop.vote("bad")
    shop.vote("good")


def test_one_key_before_an_effect_holds_up_no_other(shop: Shop, orders: PartlyBrokenOrders) -> None:
    """What can be rechecked is carried out; what cannot is never, and goes to a person."""
    approved(shop)
    orders.for_key["Z9"] = broken
    shop.run()
    assert shop.states() == {"bad": "executing", "good": "completed"}
    assert (shop.request("bad").attempts, shop.request("bad").reason) == (1, ALONE)
    shop.run_again(MAX_ATTEMPTS - 1)
    assert_given_up(shop, "bad", "execute")
    assert len(shop.calls()) == 1


def test_one_key_that_fails_slowly_does_not_make_the_others_old(
    shop: Shop, orders: PartlyBrokenOrders, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that waited for its failure are looked at anew without it, in the same pass and without an attempt."""
    approved(shop)

    def slowly_broken() -> None:
        time.sleep(0.7)
        broken()

    orders.for_key["Z9"] = slowly_broken
    monkeypatch.setattr(rechecking, "TOO_OLD", 0.6)
    shop.run(execute)
    assert shop.states() == {"bad": "executing", "good": "completed"}
    assert shop.request("bad").attempts == 1
