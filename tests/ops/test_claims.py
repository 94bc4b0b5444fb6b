"""What may be true of one request only: of two that claim the same, one goes by itself and the other sees the claim."""

from __future__ import annotations

import threading

import pytest
import sqlalchemy as sa

from ops.assess import assess
from ops.extract import extract
from ops.validate import validate
from tests.ops import toy
from tests.ops.passes import Shop, refund
from tests.ops.workers import wait_for_lock

ONCE = toy.POLICY.replace(
    "tiers:\n",
    "claims: {order: [order.refund.order_id, order.refund.amount]}\n"
    "tiers:\n  - {tier: medium, claim: order, because: refunded before}\n",
)


@pytest.fixture
def shop(shop: Shop) -> Shop:
    """A shop that refunds an order's amount once."""
    shop.set_policy(ONCE)
    return shop


def reasons(shop: Shop) -> list[str]:
    """Why requests wait."""
    return [row.reason for row in shop.rows("select reason from requests where state = 'awaiting_approval'")]


def test_of_two_equal_receipts_in_one_chunk_one_is_released(shop: Shop) -> None:
    """The second, in whatever spelling, sees that the first holds the claim."""
    shop.queue({"one": refund(order="A1"), "scan": refund(order="a1"), "other": refund(order="A2")})
    shop.run()
    states = shop.states()
    assert states.pop("other") == "completed"
    assert sorted(states.values()) == ["awaiting_approval", "completed"]
    assert reasons(shop) == ["refunded before"]
    assert len(shop.calls()) == 2


def test_of_two_equal_receipts_in_two_runs_one_is_released(shop: Shop) -> None:
    """A claim outlives the request that was completed with it."""
    shop.queue({"one": refund()})
    shop.run()
    shop.queue({"later": refund()})
    shop.run()
    assert shop.states() == {"one": "completed", "later": "awaiting_approval"}
    assert len(shop.calls()) == 1


def test_of_two_equal_receipts_in_two_runs_at_once_one_is_released(shop: Shop) -> None:
    """The second run waits until it knows whether the first one's claim stands."""
    shop.queue({"one": refund(), "two": refund()})
    shop.run(extract, validate)
    held = shop.request("two").id
    with shop.connect() as connection:
        connection.execute(sa.text("select from requests where id = :id for update"), {"id": held})
        first = shop.open()
        claiming = shop.connect()
        claiming.execute(
            sa.text(
                "create function pause_claims() returns trigger language plpgsql as"
                " $$ begin perform pg_advisory_xact_lock(4711); return new; end $$;"
                "create trigger pause_claims after insert on claims for each row execute function pause_claims()"
            )
        )
        claiming.commit()
        claiming.execute(sa.text("select pg_advisory_lock(4711)"))
        running = threading.Thread(target=lambda: first.carry_out(assess))
        running.start()
        wait_for_lock(shop)  # the first run has written its claim and not committed it
    second = threading.Thread(target=lambda: shop.run(assess))
    second.start()
    wait_for_lock(shop)
    claiming.execute(sa.text("select pg_advisory_unlock(4711)"))
    claiming.close()
    for thread in (running, second):
        thread.join()
    assert shop.states() == {"one": "executing", "two": "awaiting_approval"}


@pytest.mark.parametrize("end", ["denied", "expired", "refused by the provider"])
def test_a_request_that_ends_without_an_effect_frees_its_claim(shop: Shop, end: str) -> None:
    """What came to nothing does not stand in the way of the next request."""
    shop.queue({"one": refund("80.00")})
    toy.set_mood(shop.till, "refuse")
    shop.run()
    assert shop.count("claims") == 1
    if end == "expired":
        with shop.connect() as connection:
            connection.execute(sa.text("alter table approval_requests disable trigger user"))
            connection.execute(
                sa.text("update approval_requests set opened_at = opened_at - interval '3 d', expires_at = now()")
            )
            connection.commit()
    else:
        shop.vote("one", vote="deny" if end == "denied" else "approve")
    shop.run()
    ended = {"denied": "rejected", "expired": "expired", "refused by the provider": "failed"}
    assert shop.states() == {"one": ended[end]}
    assert shop.count("claims") == 0
    toy.set_mood(shop.till, None)
    shop.queue({"next": refund("80.00")})
    shop.run()
    assert reasons(shop) == ["above the clerk's limit"]


def test_what_policy_refuses_takes_no_claim(shop: Shop) -> None:
    """A refused request never held a claim that another one could see."""
    shop.queue({"huge": refund("800.00")})
    shop.run()
    assert shop.states() == {"huge": "rejected"}
    assert shop.count("claims") == 0


def test_a_request_does_not_stand_in_its_own_way(shop: Shop) -> None:
    """Sent back to a new round, it may take its own claim again."""
    shop.queue({"one": refund("80.00")})
    shop.run()
    shop.vote("one")
    shop.set_policy(ONCE.replace("people: 1", "people: 2"))
    shop.run()
    assert shop.states() == {"one": "awaiting_approval"}
    assert reasons(shop) == ["above the clerk's limit"]
    assert shop.count("claims") == 1
