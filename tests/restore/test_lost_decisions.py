"""What people and models decided since the backup is lost with it; it is never guessed."""

from __future__ import annotations

import pytest

from ops.assess import assess
from ops.extract import extract
from ops.validate import validate
from policies.errors import NotPossibleNow
from tests.operator.desk import Desk
from tests.ops import toy
from tests.ops.passes import Shop, refund
from tests.restore.conftest import Backup
from tests.restore.restoring import OnlyAsked, dying, no_answer, released, settled


def test_an_approval_that_was_lost_is_not_guessed(shop: Shop, desk: Desk, backup: Backup) -> None:
    """By the backup it waits for votes, but it is done: a person sees it; redriven and approved it is not repeated."""
    shop.queue({"one": refund("80.00")})
    shop.run()
    restore = backup()
    shop.vote("one")
    shop.run()
    assert (shop.states(), len(shop.calls())) == ({"one": "completed"}, 1)
    restore()
    settled(shop)
    assert shop.states() == {"one": "dead_lettered"}
    assert "by a decision the store no longer holds" in shop.request("one").reason
    desk.redrive("one")
    shop.run()
    shop.vote("one", by="lars")
    shop.run_again(2)
    assert (shop.states(), len(shop.calls())) == ({"one": "completed"}, 1)


def test_a_proposal_made_anew_is_not_what_was_done(shop: Shop, desk: Desk, backup: Backup) -> None:
    """Nobody knows with which parameters it was done: a person looks. Redriven, it is judged anew and not repeated."""
    shop.hooked(OnlyAsked)
    shop.queue({"one": refund()})
    restore = backup()
    shop.run()
    restore()
    settled(shop)
    assert shop.states() == {"one": "dead_lettered"}
    assert "by a decision the store no longer holds" in shop.request("one").reason
    desk.redrive("one")
    shop.run_again(2)
    assert (shop.states(), len(shop.calls())) == ({"one": "completed"}, 1)


def test_a_proposal_that_was_lost_is_not_taken_for_the_new_one(shop: Shop, desk: Desk, backup: Backup) -> None:
    """The model proposes anew, here something else; what the first proposal did is found and a person sees it."""
    shop.queue({"one": refund()})
    restore = backup()
    shop.run()
    assert shop.states() == {"one": "completed"}
    restore()
    shop.define(extractor=lambda request: toy.toy_model(request.model_copy(update={"say": "saga"})))
    settled(shop)
    assert shop.states() == {"one": "dead_lettered"}
    assert "contradicts" in shop.request("one").reason
    assert len(shop.effects()) == 1
    assert shop.effects("stock.reserve") == []


def test_a_new_try_that_was_lost_stops_the_request(shop: Shop, desk: Desk, backup: Backup) -> None:
    """By the backup nobody knows of the first; since then a person said no to it, and the second try was done."""
    shop.hooked(before=no_answer)
    shop.queue({"one": refund()})
    shop.run()
    restore = backup()
    shop.hooked(look_up=no_answer)
    shop.execute("update requests set attempts = 7")
    shop.run_again()
    [first] = shop.rows("select idempotency_key as key from effects")
    desk.resolve(first.key, done=False)
    desk.redrive("one")
    shop.run()
    assert (shop.states(), shop.calls()) == ({"one": "completed"}, [first.key.removesuffix("1") + "2"])
    restore()
    shop.hooked()
    toy.make_due(shop.url)
    settled(shop)
    assert shop.states() == {"one": "dead_lettered"}
    assert "contradicts" in shop.request("one").reason
    assert len(shop.effects()) == 1


def test_an_undo_that_was_lost_stops_the_request(shop: Shop, backup: Backup) -> None:
    """By the backup the reservation stands; it was undone since, so the refund must not go on."""
    shop.hooked(before=lambda key: None if "order.refund" not in key else dying())
    released(shop, {"one": refund(say="saga")})
    with pytest.raises(KeyboardInterrupt):
        shop.run()
    shop.hooked()
    shop.execute("update requests set lease_token = null, lease_until = null, next_eligible_at = received_at")
    shop.execute("update effects set state = 'intended' where state = 'in_flight'")
    restore = backup()
    toy.set_mood(shop.till, "refuse", "order.refund")
    shop.run_again()
    assert shop.states() == {"one": "compensated"}
    toy.set_mood(shop.till, None, "order.refund")
    restore()
    settled(shop)
    assert (shop.states(), shop.effects()) == ({"one": "dead_lettered"}, [])


def test_what_may_have_been_done_is_not_just_cancelled(shop: Shop, desk: Desk, backup: Backup) -> None:
    """A cancellation waits for the look-up and may be too late; what still waits for votes is not cancelled before."""
    released(shop, {"one": refund()})
    shop.queue({"asked": refund("80.00")})
    shop.run(extract, validate, assess)
    restore = backup()
    shop.run()
    restore()
    assert desk.cancel("one") == "uncertain"
    with pytest.raises(NotPossibleNow, match="restored"):
        desk.cancel("asked")
    settled(shop)
    assert shop.states()["one"] == "completed"
    assert desk.cancel("asked") == "cancelled"
