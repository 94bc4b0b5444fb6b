"""A provider that neither honours keys nor can be asked: at most once, and what is uncertain goes to a person."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import ClassVar

import pytest

from ops.reconcile import ASSUMED
from policies.actions import Action
from policies.outcomes import Done, Refused, Semantics
from tests.ops import toy
from tests.ops.passes import Shop, refund
from tests.ops.tills import HookedTill, hook


class BlindTill(HookedTill):
    """A till that knows nothing of keys."""

    semantics: ClassVar[Semantics] = Semantics(timeout=timedelta(seconds=1), concurrency=2)


class SurelyTell(toy.Tell, name="customer.tell", reversible=False, notification=True, on_unknown="assume_done"):
    """A notification that may be lost for all anybody cares."""


def blind(shop: Shop, tell: type[Action]) -> None:
    """The notification, here of class `tell`, goes to a blind till whose answer to it is lost."""
    made = BlindTill(file=str(shop.till))
    hook(made, "after", lose_the_answer)
    actions = {kind: till for kind, till in shop.workflow.actions.items() if kind is not toy.Tell}
    shop.define(actions={**actions, tell: made})


def lose_the_answer(key: str, of: str = "customer.tell") -> None:
    """The effect happened, and nobody hears of it."""
    if f":{of}:" in key:
        raise TimeoutError("no answer")


def test_an_unknown_effect_goes_to_a_person(shop: Shop) -> None:
    """It is not sent again, whatever comes."""
    blind(shop, toy.Tell)
    shop.queue({"one": refund(say="saga")})
    shop.run()
    shop.age_effects()
    shop.run_again(3)
    assert shop.states() == {"one": "dead_lettered"}
    assert len(shop.calls("customer.tell")) == 1
    assert "the provider cannot tell" in shop.request("one").reason


def test_a_notification_that_may_be_assumed_done_is_recorded_so(shop: Shop) -> None:
    """The request ends, nothing is sent twice, and the result says that nobody saw it done."""
    blind(shop, SurelyTell)
    shop.queue({"one": refund(say="saga")})
    shop.run()
    assert shop.states() == {"one": "executing"}
    shop.age_effects()
    shop.run_again()
    assert shop.states() == {"one": "completed"}
    assert len(shop.calls("customer.tell")) == 1
    effect = shop.row("select state, provider_reference, result from effects where action_type = 'customer.tell'")
    assert tuple(effect) == ("done", None, {"assumed": ASSUMED})
    told = shop.row("select payload from audit_events where type = 'effect.done' order by seq desc limit 1").payload
    assert ASSUMED.encode() in bytes(told), "the ledger says so as well"
    shop.assert_ledger_intact()


def test_an_assumption_waits_until_no_call_can_be_under_way(shop: Shop) -> None:
    """A worker that lost its lease may still be sending."""
    blind(shop, SurelyTell)
    shop.queue({"one": refund(say="saga")})
    shop.run()
    shop.run_again()
    assert shop.states() == {"one": "executing"}


def test_what_moves_money_is_never_assumed_done(shop: Shop) -> None:
    """Of two effects at the blind till only the notification is."""
    made = BlindTill(file=str(shop.till))
    hook(made, "after", lambda key: lose_the_answer(key, of="order.refund"))
    actions = {kind: made for kind in shop.workflow.actions if kind is not toy.Tell}
    shop.define(actions={**actions, SurelyTell: made})
    shop.queue({"one": refund(say="saga")})
    shop.run()
    shop.age_effects()
    shop.run_again()
    assert shop.states() == {"one": "dead_lettered"}
    assert shop.calls("customer.tell") == []


@pytest.mark.parametrize("concurrency", [1, 2])
def test_a_dead_worker_leaves_one_effect_a_thread_uncertain(shop: Shop, concurrency: int) -> None:
    """Where only a person can tell, no more is started than is being sent."""

    class Till(BlindTill):
        semantics: ClassVar[Semantics] = replace(BlindTill.semantics, concurrency=concurrency)

    def die(_key: str) -> None:
        raise SystemExit("killed")

    made = Till(file=str(shop.till))
    hook(made, "before", die)
    shop.use(made)
    shop.queue({f"r{number}": refund(order=f"A{number}") for number in range(8)})
    with pytest.raises(SystemExit):
        shop.run()
    in_flight = shop.row("select count(*) as effects from effects where state = 'in_flight'").effects
    assert 0 < in_flight <= concurrency


def test_a_look_up_that_finds_the_notification_is_believed_first(shop: Shop) -> None:
    """An assumption is for those who cannot be asked."""

    class Asked(toy.Till):
        """Honours nothing, but answers."""

        semantics: ClassVar[Semantics] = Semantics(lookup=True, timeout=timedelta(seconds=1))

        def execute(self, action: Action, key: str) -> Done | Refused:
            super().execute(action, key)
            raise TimeoutError("no answer")

    actions = {kind: till for kind, till in shop.workflow.actions.items() if kind is not toy.Tell}
    shop.define(actions={**actions, SurelyTell: Asked(file=str(shop.till))})
    shop.queue({"one": refund(say="saga")})
    shop.run()
    shop.age_effects()
    shop.run_again()
    effect = shop.row("select state, provider_reference, result from effects where action_type = 'customer.tell'")
    assert effect.state == "done"
    assert effect.provider_reference.startswith("till-")
    assert effect.result == {}
