"""Effects that may have happened at a provider that honours keys but cannot be asked."""

from __future__ import annotations

from datetime import timedelta
from typing import ClassVar

from policies.errors import NotExecuted
from policies.outcomes import Semantics
from resources.store.pauses import Scope
from tests.operator.desk import Desk
from tests.operator.test_cancel import WITH_CLAIM
from tests.operator.test_late_undo import due, late_reservation, undo
from tests.ops import toy
from tests.ops.passes import Shop, refund
from tests.ops.tills import HookedTill


class OnlyKeyed(HookedTill):
    semantics: ClassVar[Semantics] = Semantics(honours_key=timedelta(days=1), timeout=timedelta(seconds=1))


def paid_and_not_heard_of(shop: Shop) -> None:
    """The refund is made, the answer is lost, and nobody can look."""
    shop.hooked(OnlyKeyed)
    toy.set_mood(shop.till, "lose the answer")
    shop.set_policy(WITH_CLAIM)
    shop.queue({"one": refund()})
    shop.run()


def about_to_be_sent_again(shop: Shop, desk: Desk) -> None:
    """It may be sent again under its key, but everything is paused."""
    paid_and_not_heard_of(shop)
    shop.age_effects()
    desk.pause(Scope.EVERYTHING)
    shop.run_again()
    assert desk.effect("order.refund").state == "intended"


def test_a_cancellation_asked_for_while_it_is_unknown_never_says_that_nothing_happened(shop: Shop, desk: Desk) -> None:
    """It will not be sent again and nobody can look, so a person finds out."""
    paid_and_not_heard_of(shop)
    assert desk.cancel("one") == "uncertain"
    shop.age_effects()
    shop.run_again(2)
    assert (len(shop.effects()), shop.states()) == (1, {"one": "dead_lettered"})
    assert desk.effect("order.refund").state == "unknown"


def test_a_cancellation_before_it_is_sent_again_keeps_the_claim(shop: Shop, desk: Desk) -> None:
    """Nor does one that comes when it is already meant to be sent again."""
    about_to_be_sent_again(shop, desk)
    assert desk.cancel("one") == "uncertain"
    assert (shop.states(), len(shop.rows("select * from claims"))) == ({"one": "executing"}, 1)
    shop.run_again(2)
    assert (len(shop.calls()), shop.states()) == (1, {"one": "dead_lettered"})


def test_a_saga_is_not_undone_beside_what_may_have_happened(shop: Shop, desk: Desk) -> None:
    """The reservation stays until somebody knows whether the refund was made."""
    shop.hooked(OnlyKeyed)
    toy.set_mood(shop.till, "lose the answer", "order.refund")
    shop.queue({"one": refund(say="saga")})
    shop.run()
    assert desk.cancel("one") == "uncertain"
    shop.age_effects()
    shop.run_again(3)
    assert (len(shop.effects()), shop.calls("stock.unreserve"), shop.states()) == (1, [], {"one": "dead_lettered"})


def test_a_stricter_policy_does_not_make_it_unhappened(shop: Shop, desk: Desk) -> None:
    """What policy no longer lets go is a person's, since it may be done already."""
    about_to_be_sent_again(shop, desk)
    shop.set_policy(toy.POLICY.replace("low: auto", "low: refuse"))
    desk.resume(Scope.EVERYTHING)
    shop.execute("update requests set rechecked_until = null")
    shop.run_again(2)
    assert (len(shop.effects()), len(shop.calls()), shop.states()) == (1, 1, {"one": "dead_lettered"})
    assert desk.effect("order.refund").state == "unknown"


def test_a_key_is_not_sent_once_it_is_forgotten_however_long_the_pause(shop: Shop, desk: Desk) -> None:
    """The provider's memory is asked about when the effect starts, not only when it was judged."""
    about_to_be_sent_again(shop, desk)
    shop.execute("update effects set first_sent_at = first_sent_at - interval '2 d'")
    toy.set_mood(shop.till, None)
    desk.resume(Scope.EVERYTHING)
    shop.run_again(2)
    assert (len(shop.calls()), shop.states()) == (1, {"one": "dead_lettered"})
    assert desk.effect("order.refund").state == "unknown"


def test_a_call_that_did_nothing_says_nothing_of_the_one_before(shop: Shop, desk: Desk) -> None:
    """Sent again, the provider is busy: it may still have happened the first time."""
    about_to_be_sent_again(shop, desk)

    def busy(_key: str) -> None:
        raise NotExecuted("busy")

    shop.hooked(OnlyKeyed, before=busy)
    desk.resume(Scope.EVERYTHING)
    shop.run_again()
    assert desk.effect("order.refund").state == "intended"
    assert desk.cancel("one") == "uncertain"


def test_within_its_memory_the_key_is_sent_again_and_pays_once(shop: Shop, desk: Desk) -> None:
    """Which is what such a provider is for."""
    about_to_be_sent_again(shop, desk)
    toy.set_mood(shop.till, None)
    desk.resume(Scope.EVERYTHING)
    shop.run_again(2)
    assert (len(shop.effects()), shop.states()) == (1, {"one": "completed"})


def test_an_undo_that_nobody_can_look_for_is_not_sent_under_a_forgotten_key(shop: Shop, desk: Desk) -> None:
    """Meant to be sent again, it is held back until the provider has forgotten the key: then a person looks."""
    key = late_reservation(shop, desk)
    undo(shop, desk, key)
    shop.hooked(OnlyKeyed)
    toy.set_mood(shop.till, "lose the answer", "stock.unreserve")
    shop.run()
    shop.age_effects()
    desk.pause(Scope.EVERYTHING)
    for _ in range(2):
        due(shop)
        shop.run()
    assert shop.rows("select state from effects where kind = 'compensation'") == [("intended",)]
    shop.execute("update effects set first_sent_at = first_sent_at - interval '2 d' where kind = 'compensation'")
    toy.set_mood(shop.till, None, "stock.unreserve")
    desk.resume(Scope.EVERYTHING)
    due(shop)
    shop.run()
    assert shop.calls("stock.unreserve") == [f"{key}:undo"]
