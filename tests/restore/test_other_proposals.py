"""What another proposal than the one that stands did since the backup, and where no provider can tell."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ops.extract import extract
from policies.actions import Action
from policies.proposals import Abstention, Evidence, Proposal, propose
from resources.store.inputs import supply
from tests.operator.desk import WHY, Desk
from tests.operator.supplying import Refunds
from tests.operator.test_unseen_effects import OnlyKeyed
from tests.ops import toy
from tests.ops.passes import Shop, refund
from tests.ops.test_blind_provider import SurelyTell
from tests.ops.tills import HookedTill
from tests.restore.conftest import Backup
from tests.restore.restoring import Blind, released, settled


class Stricter(Refunds):
    """What a later release asks for as well."""

    channel: str


def only(action: type[Action], request: toy.RefundRequest) -> Proposal:
    """Nothing but one action that takes an order."""
    order = Evidence("order_id", "order_id", request.order_id)
    return Proposal((propose(action, order_id=request.order_id, evidence=[order]),))


def model(request: Refunds) -> Proposal | Abstention:
    """Reserves where it is told `by hand`, or by which channel; otherwise refunds, where an amount is stated."""
    if request.text == "by hand" or getattr(request, "channel", None):
        return only(toy.Reserve, request)
    return toy.toy_model(request) if request.text else Abstention("no amount is stated")


def handled(shop: Shop, action: type[Action], till: type[HookedTill]) -> None:
    """Give one action to a till of its own kind."""
    shop.define(actions={**shop.workflow.actions, action: till(file=str(shop.till))})


def reserved_before(shop: Shop, desk: Desk, backup: Backup) -> Callable[[], None]:
    """A request that lacked something at the backup and reserved once it was supplied; what it returns restores."""
    shop.define(request=Refunds, extractor=model)
    initiator = desk.sign_in(shop.clerk)
    shop.queue({"one": {"order_id": "A1"}})
    shop.run()
    restore = backup()
    supply(shop.url, initiator, desk.id("one"), shop.workflow, {"text": "by hand"}, WHY)
    shop.run()
    assert (shop.states(), len(shop.effects("stock.reserve"))) == ({"one": "completed"}, 1)
    return restore


@pytest.mark.parametrize(("till", "why"), [(HookedTill, "contradicts"), (Blind, "the provider cannot tell")])
def test_input_supplied_anew_repeats_nothing_of_the_first(
    shop: Shop, desk: Desk, backup: Backup, till: type[HookedTill], why: str
) -> None:
    """The first input led to another action; a person looks, and where no provider can tell only they end it."""
    handled(shop, toy.Reserve, till)
    reserved_before(shop, desk, backup)()
    supply(shop.url, desk.sign_in(shop.clerk), desk.id("one"), shop.workflow, {"text": "TOTAL 21.00 EUR"}, WHY)
    settled(shop)
    assert (shop.states(), shop.effects()) == ({"one": "dead_lettered"}, [])
    assert why in desk.open_cases()[0]
    desk.redrive("one")
    shop.run_again(2)
    assert (shop.states(), shop.effects()) == ({"one": "dead_lettered"}, [])


def replaced_and_taken_back(shop: Shop, desk: Desk, backup: Backup) -> None:
    """A stricter release got the input it asked for and did what that led to; then release and store are as before."""
    restore = backup()
    shop.define(request=Stricter)
    shop.run()
    supply(shop.url, desk.sign_in(shop.clerk), desk.id("one"), shop.workflow, {"channel": "post"}, WHY)
    shop.run()
    assert (shop.states(), len(shop.effects("stock.reserve"))) == ({"one": "completed"}, 1)
    restore()
    shop.define(request=Refunds)
    settled(shop)


@pytest.mark.parametrize(("till", "why"), [(HookedTill, "contradicts"), (Blind, "the provider cannot tell")])
def test_a_proposal_that_was_replaced_since_does_not_go_on(
    shop: Shop, desk: Desk, backup: Backup, till: type[HookedTill], why: str
) -> None:
    """A later release asked for more and got it; release and store are taken back, and the proposal stands again."""
    handled(shop, toy.Reserve, till)
    shop.define(request=Refunds, extractor=model)
    shop.queue({"one": refund()})
    shop.run(extract)
    assert shop.states() == {"one": "proposal_ready"}
    replaced_and_taken_back(shop, desk, backup)
    assert (shop.states(), shop.effects()) == ({"one": "dead_lettered"}, [])
    assert why in desk.open_cases()[0]


def test_a_released_proposal_that_was_replaced_since_does_not_go_on(shop: Shop, desk: Desk, backup: Backup) -> None:
    """The backup holds it as released; what the one after it did is found."""
    shop.define(request=Refunds, extractor=model)
    released(shop, {"one": refund()})
    replaced_and_taken_back(shop, desk, backup)
    assert (shop.states(), shop.effects()) == ({"one": "dead_lettered"}, [])


def test_what_was_only_received_goes_on_where_every_provider_can_tell(shop: Shop, backup: Backup) -> None:
    """It is proposed anew, nothing is found under any key, and nobody is called."""
    shop.queue({"one": refund()})
    backup()()
    settled(shop)
    assert (shop.states(), len(shop.effects())) == ({"one": "completed"}, 1)


@pytest.mark.parametrize("till", [Blind, OnlyKeyed])
def test_a_word_on_what_stands_is_none_on_what_replaced_it(
    shop: Shop, desk: Desk, backup: Backup, till: type[HookedTill]
) -> None:
    """Nobody can tell of either: the case names both, and redriven the request still does not go on."""
    handled(shop, toy.Refund, till)
    handled(shop, toy.Reserve, Blind)
    shop.queue({"one": refund()})
    shop.run(extract)
    backup()()
    settled(shop)
    desk.redrive("one")
    shop.run_again(2)
    assert (shop.states(), shop.calls()) == ({"one": "dead_lettered"}, [])
    assert all(f"1:{kind}:1" in desk.open_cases()[-1] for kind in ("order.refund", "stock.reserve"))
    assert shop.count("effects") == 0


def test_a_notification_that_may_be_lost_calls_nobody(shop: Shop, backup: Backup) -> None:
    """No provider can tell whether another proposal sent it, and the catalogue says that nobody need know."""
    others = {kind: till for kind, till in shop.workflow.actions.items() if kind is not toy.Tell}
    shop.define(actions={**others, SurelyTell: Blind(file=str(shop.till))})
    shop.queue({"one": refund()})
    backup()()
    settled(shop)
    assert (shop.states(), len(shop.effects())) == ({"one": "completed"}, 1)


def test_a_model_that_may_have_said_something_else_calls_a_person(shop: Shop, desk: Desk, backup: Backup) -> None:
    """It was only received at the backup; what the first proposal did, no provider can tell."""
    handled(shop, toy.Reserve, Blind)
    shop.define(extractor=lambda request: only(toy.Reserve, request))
    shop.queue({"one": refund()})
    restore = backup()
    shop.run()
    assert (shop.states(), len(shop.effects("stock.reserve"))) == ({"one": "completed"}, 1)
    restore()
    shop.define(extractor=toy.toy_model)
    settled(shop)
    assert (shop.states(), shop.effects()) == ({"one": "dead_lettered"}, [])
    assert "submit anew what was not done" in desk.open_cases()[0]


def test_what_was_judged_before_the_backup_goes_on(shop: Shop, backup: Backup) -> None:
    """That another proposal came after it is too unlikely to call a person for every request that was released."""
    handled(shop, toy.Reserve, Blind)
    released(shop, {"one": refund()})
    backup()()
    settled(shop)
    assert (shop.states(), len(shop.effects())) == ({"one": "completed"}, 1)


def test_what_was_done_itself_excludes_every_other_proposal(shop: Shop, desk: Desk, backup: Backup) -> None:
    """Found by its own key it goes to a person as a lost decision, and on once they redrive it."""
    handled(shop, toy.Reserve, Blind)
    shop.queue({"one": refund()})
    restore = backup()
    shop.run()
    restore()
    settled(shop)
    assert "by a decision the store no longer holds" in shop.request("one").reason
    desk.redrive("one")
    shop.run_again(2)
    assert (shop.states(), len(shop.calls())) == ({"one": "completed"}, 1)
