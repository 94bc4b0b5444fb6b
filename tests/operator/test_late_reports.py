"""What a provider tells a worker that lost its lease: kept always, and a case where it contradicts what was settled."""

from __future__ import annotations

import uuid

import pytest

from policies.effects import EffectState
from resources.store.cases import unclear_effects
from resources.store.effects import Outcome, report_late
from resources.store.engine import Duty, engine_for, transaction
from resources.store.operator import Cancelled
from tests.operator.desk import Desk
from tests.operator.test_dead_letters import busy, no_answer, standing, unknown, use_up_attempts
from tests.operator.test_unknown import key_of
from tests.ops import toy
from tests.ops.passes import Shop, refund

HAPPENED, NOT = EffectState.DONE, EffectState.REFUSED


def report(shop: Shop, key: str, state: EffectState, reference: str = "till-late") -> None:
    """What a worker that had lost its lease is told of an effect."""
    with transaction(engine_for(Duty.WORKER, shop.url)) as connection:
        report_late(connection, [Outcome(uuid.uuid4(), 1, key, state, reference)])


def fenced(shop: Shop, desk: Desk) -> str:
    """Said to be not done, and redriven: the second try is done. Returns the first key."""
    shop.hooked(before=no_answer, look_up=no_answer)
    shop.queue({"one": refund()})
    use_up_attempts(shop)
    first = key_of(desk)
    desk.resolve(first, done=False)
    shop.hooked()
    desk.redrive("one")
    shop.run()
    assert (shop.states(), standing(shop)) == ({"one": "completed"}, 0)
    return first


def test_a_late_report_on_a_fenced_effect_is_a_case(shop: Shop, desk: Desk) -> None:
    """It did happen after all, beside the second try: the effect is late, the batch red, the request as it was."""
    first = fenced(shop, desk)
    report(shop, first, HAPPENED)
    effect = shop.row("select * from effects where idempotency_key = :key", key=first)
    assert (effect.state, effect.provider_reference) == ("late", "till-late")
    assert shop.states() == {"one": "completed"}
    assert desk.open_cases() == [f"{first} happened after it was fenced; nothing undoes it"]
    assert [one.key for one in unclear_effects(shop.url)] == [first]
    told = shop.events("one")
    assert told.index("effect.late") == told.index("effect.late_report") + 1
    outbox = shop.rows("select payload ->> 'key' as key from outbox where type = 'effect.late'")
    assert outbox == [(first,)]
    assert "completed and has" not in str(desk.discard("one", dry_run=True)[0].obstacle)
    shop.assert_ledger_intact()


@pytest.mark.parametrize(("done", "state"), [(True, "done"), (False, "fenced")])
def test_the_case_of_a_late_effect_is_closed_by_resolving_it(shop: Shop, desk: Desk, done: bool, state: str) -> None:
    """It stands, or was undone by hand: either way by evidence, and the batch turns green."""
    first = fenced(shop, desk)
    report(shop, first, HAPPENED)
    desk.resolve(first, done=done)
    assert (standing(shop), unclear_effects(shop.url)) == (0, [])
    assert shop.row("select state from effects where idempotency_key = :key", key=first).state == state
    assert shop.states() == {"one": "completed"}


def test_the_case_of_an_ended_request_can_be_discarded(shop: Shop, desk: Desk) -> None:
    """It is closed with its reason; the request that has ended stays as it ended."""
    first = fenced(shop, desk)
    report(shop, first, HAPPENED)
    assert desk.discard("one")[0].obstacle is None
    assert (shop.states(), standing(shop), unclear_effects(shop.url)) == ({"one": "completed"}, 0, [])
    assert "no open case" in str(desk.discard("one")[0].obstacle)


def test_a_late_report_on_a_refused_effect_is_a_case(shop: Shop, desk: Desk) -> None:
    """A provider that said no and did it all the same."""
    toy.set_mood(shop.till, "refuse")
    shop.queue({"one": refund()})
    shop.run()
    assert shop.states() == {"one": "failed"}
    report(shop, key_of(desk), HAPPENED)
    assert (desk.effect("order.refund").state, shop.states(), standing(shop)) == ("late", {"one": "failed"}, 1)


def test_a_late_effect_names_what_undoes_it(shop: Shop, desk: Desk) -> None:
    """The case says which action takes it back."""
    toy.set_mood(shop.till, "refuse", "stock.reserve")
    shop.queue({"one": refund(say="saga")})
    shop.run()
    report(shop, key_of(desk, "stock.reserve"), HAPPENED)
    key = key_of(desk, "stock.reserve")
    assert desk.open_cases() == [
        f"{key} happened after it was refused; stock.unreserve undoes it (failsafe unknown undo)"
    ]


def test_a_late_report_on_what_was_cancelled_is_a_case(shop: Shop, desk: Desk) -> None:
    """An effect that was certainly not done when its request was cancelled, and then was done."""
    shop.hooked(before=busy)
    shop.queue({"one": refund()})
    shop.run()
    assert desk.cancel("one") is Cancelled.CANCELLED
    report(shop, key_of(desk), HAPPENED)
    assert (desk.effect("order.refund").state, shop.states(), standing(shop)) == ("late", {"one": "cancelled"}, 1)


def test_a_late_no_to_what_a_person_called_done_is_a_case(shop: Shop, desk: Desk) -> None:
    """The effect stays as the person said; somebody has to look again."""
    unknown(shop)
    desk.resolve(key_of(desk), done=True)
    desk.redrive("one")
    shop.run()
    report(shop, key_of(desk), NOT)
    assert (desk.effect("order.refund").state, shop.states(), standing(shop)) == ("done", {"one": "completed"}, 1)


@pytest.mark.parametrize("said", [HAPPENED, NOT, EffectState.UNKNOWN])
def test_a_late_report_that_says_nothing_new_is_only_kept(shop: Shop, desk: Desk, said: EffectState) -> None:
    """Done and said done, refused and said no, or a report of nothing: the ledger has it, nothing changes."""
    if said is not HAPPENED:
        toy.set_mood(shop.till, "refuse")
    shop.queue({"one": refund()})
    shop.run()
    before = (desk.effect("order.refund").state, shop.states())
    report(shop, key_of(desk), said)
    assert (desk.effect("order.refund").state, shop.states()) == before
    assert desk.open_cases() == []
    assert shop.events("one")[-1] == "effect.late_report"


def test_a_late_report_adds_to_a_case_that_is_open(shop: Shop, desk: Desk) -> None:
    """One case a request, with all that is known of it; and it blocks the redrive until it is resolved."""
    shop.hooked(before=no_answer, look_up=no_answer)
    shop.queue({"one": refund()})
    use_up_attempts(shop)
    desk.resolve(key_of(desk), done=False)
    report(shop, key_of(desk), HAPPENED)
    [failure] = desk.open_cases()
    assert failure.endswith("happened after it was fenced; nothing undoes it")
    assert "look-up failed" in failure
    assert "arrived late" in str(desk.redrive("one")[0].obstacle)
    desk.resolve(key_of(desk), done=True)
    assert standing(shop) == 1, "it is still parked"
    desk.redrive("one")
    shop.hooked()
    shop.run()
    assert (shop.states(), shop.calls(), standing(shop)) == ({"one": "completed"}, [], 0)


def test_a_late_effect_stops_the_second_try_before_it_starts(shop: Shop, desk: Desk) -> None:
    """Redriven under a new key, but the first turns out done before it is sent: it is not sent."""
    shop.hooked(before=no_answer, look_up=no_answer)
    shop.queue({"one": refund()})
    use_up_attempts(shop)
    desk.resolve(key_of(desk), done=False)
    desk.redrive("one")
    report(shop, key_of(desk), HAPPENED)
    shop.hooked()
    shop.run()
    assert (shop.states(), shop.calls()) == ({"one": "dead_lettered"}, [])
