"""What happens to one payment at every kind of provider, whatever goes wrong: the behaviour that a key is there for."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa

from policies.outcomes import Done
from resources.adapters.base import opened
from resources.failpoints import Failpoint
from tests.faults.plan import Fate, Planned
from tests.faults.providers import BANK_URL, REFUSED
from tests.faults.proxy import breaking_off
from tests.faults.workflow import PAYMENTS
from tests.idempotency.conftest import PROVIDERS, Payment


def at(*names: str) -> pytest.MarkDecorator:
    """Run for these providers, or for all."""
    return pytest.mark.parametrize("payment", names or list(PROVIDERS), indirect=True)


BREAKABLE = ("http", "in_process", "look_up_only", "blind", "smtp")
"""Providers that can be told to have faults; the bank has those that its connection has."""

ASKABLE = ("http", "in_process", "look_up_only")


def settled(payment: Payment, *, happened: bool) -> None:
    """Where the outcome can be found out it is one effect; elsewhere a person has it and nothing is repeated."""
    if payment.promised or (happened and payment.pay == "asked"):
        assert (payment.state, payment.times) == ("completed", 1)
    else:
        assert (payment.state, payment.times) == ("dead_lettered", int(happened))
        assert len(payment.calls) <= 1


@at()
def test_what_is_done_is_not_done_again(payment: Payment) -> None:
    """First use makes one effect; every later run finds nothing to do."""
    payment.submit()
    payment.run()
    payment.run_later(2)
    assert (payment.state, payment.times) == ("completed", 1)
    assert len(payment.calls) == (0 if payment.pay == "shared" else 1)


@at()
def test_of_two_workers_at_once_one_pays(payment: Payment) -> None:
    """The other finds it in hand, and makes no call."""
    payment.submit()
    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(payment.run) for _ in range(2)]:
            done.result()
    payment.run_later()
    assert (payment.state, payment.times) == ("completed", 1)
    assert len(payment.calls) <= 1


@at()
def test_a_worker_that_died_before_it_wrote_its_intent_leaves_a_first_use(payment: Payment) -> None:
    """Nothing was begun, so nothing has to be found out: even a blind provider is called."""
    payment.submit()
    payment.die_at(Failpoint.STARTING_EFFECTS)
    assert payment.times == 0
    payment.run_later()
    assert (payment.state, payment.times, payment.effect()) == ("completed", 1, ("done", 1))


@at()
def test_a_worker_that_died_between_intent_and_call_is_told_from_one_that_called(payment: Payment) -> None:
    """Absent by look-up, it is sent under the same key where that is safe; elsewhere a person decides."""
    payment.submit()
    payment.die_at(Failpoint.CALLING_PROVIDER)
    payment.run_later(2)
    settled(payment, happened=False)


@at()
@pytest.mark.parametrize("point", [Failpoint.PROVIDER_ANSWERED, Failpoint.RECORDING_OUTCOMES, Failpoint.CONCLUDING])
def test_an_effect_of_a_worker_that_died_is_adopted(payment: Payment, point: Failpoint) -> None:
    """Found by look-up it counts, without a second call."""
    payment.submit()
    payment.die_at(point)
    assert payment.times == 1
    payment.run_later(2)
    settled(payment, happened=True)
    assert len(payment.calls) <= 1


@at(*BREAKABLE)
@pytest.mark.parametrize("fault", ["lose_answer", "fail_after", "nonsense"])
def test_an_answer_that_says_nothing_is_no_failure(payment: Payment, fault: str) -> None:
    """Timed out, failed after the effect or unreadable: unknown, looked up, and never sent under another key."""
    payment.submit()
    payment.break_down(fault)
    payment.run()
    assert payment.effect() == ("unknown", 1)
    payment.run_later(2)
    settled(payment, happened=True)
    assert len(payment.calls) == 1


@at("shared_transaction")
def test_an_answer_of_the_bank_that_was_lost_is_no_failure(payment: Payment, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its connection ends once it has committed: unknown, and found by key."""
    payment.submit()
    with breaking_off(payment.world.place.bank_url, 1, heard=True, at_statements=True) as (proxy, url):
        monkeypatch.setenv(BANK_URL, url)
        payment.run()
        assert proxy.broken == 1
    monkeypatch.setenv(BANK_URL, payment.world.place.bank_url)
    assert payment.effect() == ("unknown", 1)
    assert payment.times == 1
    payment.run_later()
    settled(payment, happened=True)


@at("shared_transaction")
def test_a_statement_that_the_bank_never_heard_is_looked_up_as_well(
    payment: Payment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its connection ends before it has acted: unknown, found absent by key, and sent again under it."""
    payment.submit()
    with breaking_off(payment.world.place.bank_url, 1, heard=False, at_statements=True) as (proxy, url):
        monkeypatch.setenv(BANK_URL, url)
        payment.run()
        assert proxy.broken == 1
    monkeypatch.setenv(BANK_URL, payment.world.place.bank_url)
    assert payment.effect() == ("unknown", 1)
    assert payment.times == 0
    payment.run_later(2)
    settled(payment, happened=False)
    assert payment.effect() == ("done", 2)


@at(*BREAKABLE)
def test_a_call_that_broke_off_before_the_effect_is_looked_up_as_well(payment: Payment) -> None:
    """It looks the same from here, so it is treated the same."""
    payment.submit()
    payment.break_down("fail_before")
    payment.run()
    assert payment.effect() == ("unknown", 1)
    payment.run_later(3)
    settled(payment, happened=False)
    assert len(set(payment.calls)) == 1


@at(*BREAKABLE)
def test_not_executed_is_tried_again_under_the_same_key_and_not_before_its_time(payment: Payment) -> None:
    """A 429, with its date where it comes by HTTP, is no outcome: nothing is stored as one."""
    payment.submit()
    payment.break_down("busy")
    payment.run()
    assert payment.effect() == ("intended", 1)
    if payment.provider != "smtp":  # a mail server says no time, and by full jitter the wait may be none
        payment.run()
        assert len(payment.calls) == 1, "it waits"
    payment.run_later()
    assert (payment.state, payment.times, payment.effect()) == ("completed", 1, ("done", 2))
    assert len(set(payment.calls)) == 1


@at("shared_transaction")
def test_a_bank_that_is_away_executed_nothing(payment: Payment) -> None:
    """No connection is no outcome: the same key later."""
    payment.submit()
    with payment.bank_away():
        payment.run()
    assert (payment.effect(), payment.times) == (("intended", 1), 0)
    payment.run_later()
    assert (payment.state, payment.times, payment.effect()) == ("completed", 1, ("done", 2))


@at()
def test_a_refusal_is_final(payment: Payment) -> None:
    """A business answer ends the request; no later run asks again."""
    payment.submit(REFUSED)
    payment.run()
    payment.run_later(2)
    assert (payment.state, payment.times) == ("failed", 0)
    assert len(payment.calls) == (0 if payment.pay == "shared" else 1)


@at(*ASKABLE)
@pytest.mark.parametrize("fault", ["deaf", "mumble"])
def test_a_look_up_that_fails_says_nothing(payment: Payment, fault: str) -> None:
    """The effect stays unknown and nothing is sent, until the look-up answers."""
    payment.submit()
    payment.break_down("lose_answer")
    payment.break_down(fault, 2)
    payment.run()
    for _ in range(2):
        payment.run_later()
        assert payment.effect() == ("unknown", 1)
    payment.run_later()
    assert (payment.state, payment.times) == ("completed", 1)
    assert len(payment.calls) == 1


@at("shared_transaction")
@pytest.mark.parametrize("point", [Failpoint.CALLING_PROVIDER, Failpoint.PROVIDER_ANSWERED])
def test_a_look_up_at_a_bank_that_is_away_says_nothing(payment: Payment, point: Failpoint) -> None:
    """Whether it was paid or not: the effect stays unknown and nothing is sent, until the bank is there again."""
    payment.submit()
    payment.die_at(point)
    before = payment.times
    with payment.bank_away():
        for _ in range(2):
            payment.run_later()
            assert payment.effect() == ("unknown", 1)
    assert payment.times == before == (point is Failpoint.PROVIDER_ANSWERED)
    payment.run_later(2)
    assert (payment.state, payment.times) == ("completed", 1)


@at("look_up_only")
def test_an_effect_that_does_not_show_yet_is_waited_for(payment: Payment) -> None:
    """Absent counts only once the provider would show it: nobody is bothered, and nothing is sent."""
    payment.submit()
    payment.break_down("lose_answer")
    payment.run()
    payment.world.change("waits_pass")
    payment.run()
    assert payment.state == "executing"
    assert payment.effect() == ("unknown", 1)
    payment.run_later()
    assert (payment.state, payment.times) == ("completed", 1)


@at("http", "in_process", "shared_transaction")
def test_a_key_that_the_provider_may_have_forgotten_is_not_sent_again(payment: Payment) -> None:
    """Its retention counts from the first send; where key and effect share a transaction nothing is forgotten."""
    payment.submit()
    payment.die_at(Failpoint.CALLING_PROVIDER)
    payment.world.change("sent_long_ago")
    payment.run_later(2)
    if payment.pay == "shared":
        assert (payment.state, payment.times) == ("completed", 1)
    else:
        assert (payment.state, payment.times) == ("dead_lettered", 0)


@at("http", "in_process", "shared_transaction")
def test_a_replay_tells_what_happened_then_even_if_it_is_gone_since(payment: Payment) -> None:
    """What was deleted at the provider is not made anew by a repeated call."""
    payment.submit()
    payment.run()
    assert payment.times == 1
    (effect,) = payment.world.named("effects_begun")
    delete(payment)
    amount = {"minor": 2000, "currency": "EUR"}
    action = PAYMENTS[payment.pay].model_validate_json(json.dumps({"order_id": payment.order, "amount": amount}))
    live = opened(payment.world.workflow.adapter_for(payment.kind))
    try:
        answer = live.execute(action, effect.key)
    finally:
        live.close()
    assert isinstance(answer, Done)
    assert answer.reference == effect.reference
    assert payment.times == 0


def delete(payment: Payment) -> None:
    """The provider loses what it did; what it knows of the key stays."""
    if payment.pay == "shared":
        with payment.world.place.connect(payment.world.place.bank_url).begin() as connection:
            connection.execute(sa.text("delete from payments where order_id = :order"), {"order": payment.order})
    else:
        with payment.ledger.writing() as books:
            books.execute("delete from effects")


@at()
def test_the_same_order_in_another_workflow_is_another_effect(payment: Payment) -> None:
    """A key belongs to one request of one workflow."""
    payment.submit()
    payment.run()
    other = payment.in_another_workflow()
    other.submit([Planned(payment.order, payment.pay, Fate.AUTO)])
    other.one_pass()
    assert other.states() == {payment.order: "completed"}
    keys = {row.key for world in (payment.world, other) for row in world.named("effects_begun")}
    assert len(keys) == 2


@at("http", "in_process", "shared_transaction")
@pytest.mark.parametrize("point", [Failpoint.CALLING_UNDO, Failpoint.UNDO_ANSWERED, Failpoint.RECORDING_UNDO])
def test_an_undo_has_a_key_of_its_own_and_is_as_safe(payment: Payment, point: Failpoint) -> None:
    """A worker that dies around it leaves what the next one settles: undone once."""
    shared = payment.pay == "shared"
    done, undone = ("seat.hold", "seat.free") if shared else ("stock.reserve", "stock.unreserve")
    payment.submit(REFUSED, ("hold" if shared else "reserve",))
    payment.die_at(point)
    payment.run_later(2)
    assert payment.state == "compensated"
    books = payment.world.effects()
    assert [books[kind, payment.order] for kind in (done, undone)] == [1, 1]
    (undo,) = [row for row in payment.world.named("effects_begun") if row.kind == "compensation"]
    assert undo.key.endswith(f":{done}:1:undo")
