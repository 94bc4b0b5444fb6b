"""An action that was begun twice: each try has its own key, its own fate and its own undo."""

from __future__ import annotations

import pytest

from ops.reconcile import reconcile
from policies.errors import NotExecuted
from tests.operator.desk import Desk
from tests.operator.test_cancel import reserve_alone
from tests.operator.test_dead_letters import no_answer, use_up_attempts
from tests.operator.test_late_reports import HAPPENED, report
from tests.operator.test_late_undo import due, undo
from tests.operator.test_unknown import key_of
from tests.ops import toy
from tests.ops.passes import Shop, refund


def second_try_waits(shop: Shop, desk: Desk) -> tuple[str, str]:
    """Redriven, the second try waits for a busy provider; then the first turns out to have happened."""
    shop.define(extractor=reserve_alone)
    shop.hooked(before=no_answer, look_up=no_answer)
    shop.queue({"one": refund()})
    use_up_attempts(shop)
    first = key_of(desk, "stock.reserve")
    desk.resolve(first, done=False)

    def busy(_key: str) -> None:
        raise NotExecuted("busy")

    shop.hooked(before=busy)
    desk.redrive("one")
    shop.run()
    second = first.removesuffix("1") + "2"
    found = shop.rows("select idempotency_key, state from effects order by intent")
    assert found == [(first, "fenced"), (second, "intended")]
    report(shop, first, HAPPENED)
    shop.hooked()
    return first, second


@pytest.mark.parametrize(("stands", "state"), [(False, "dead_lettered"), (True, "completed")])
def test_a_second_try_is_not_sent_once_the_first_is_known_to_have_happened(
    shop: Shop, desk: Desk, stands: bool, state: str
) -> None:
    """A person decides; where they let the first one stand, that is what was wanted."""
    first, _ = second_try_waits(shop, desk)
    if stands:
        desk.resolve(first, done=True)
    shop.execute("update providers set open_until = null")
    shop.run_again(2)
    assert (shop.states(), shop.calls("stock.reserve")) == ({"one": state}, [])


def test_a_look_up_of_a_late_undo_is_not_taken_for_one_of_the_action(shop: Shop, desk: Desk) -> None:
    """That the undo was found done does not complete the request."""
    first, second = second_try_waits(shop, desk)
    undo(shop, desk, first)
    toy.set_mood(shop.till, "lose the answer", "stock.unreserve")
    shop.run(reconcile)
    assert shop.calls("stock.unreserve") == [f"{first}:undo"]
    shop.age_effects()
    toy.make_due(shop.url)
    shop.run(reconcile)
    assert second not in shop.effects("stock.reserve")
    assert shop.states() != {"one": "completed"}


def test_the_undo_of_the_first_try_is_not_taken_for_that_of_the_second(shop: Shop, desk: Desk) -> None:
    """The second reservation is undone under its own key before anything is called compensated."""
    shop.hooked(before=no_answer, look_up=no_answer)
    shop.queue({"one": refund(say="saga")})
    use_up_attempts(shop)
    first = key_of(desk, "stock.reserve")
    desk.resolve(first, done=False)
    report(shop, first, HAPPENED)
    undo(shop, desk, first)
    shop.hooked()
    shop.run()
    assert shop.calls("stock.unreserve") == [f"{first}:undo"]
    toy.set_mood(shop.till, "refuse", "order.refund")
    desk.redrive("one")
    shop.run_again(3)
    second = first.removesuffix("1") + "2"
    assert second in shop.effects("stock.reserve")
    assert f"{second}:undo" in shop.calls("stock.unreserve")
    assert shop.states() == {"one": "compensated"}


def test_two_late_tries_are_undone_each_under_its_own_key(shop: Shop, desk: Desk) -> None:
    """Also where the provider is busy in between."""
    shop.hooked(before=no_answer, look_up=no_answer)
    shop.queue({"one": refund(say="saga")})
    use_up_attempts(shop)
    first = key_of(desk, "stock.reserve")
    second = first.removesuffix("1") + "2"
    desk.resolve(first, done=False)
    desk.redrive("one")
    use_up_attempts(shop)
    desk.resolve(second, done=False)
    for key in (first, second):
        report(shop, key, HAPPENED)
        undo(shop, desk, key)
    busy = ["once"]

    def busy_once(_key: str) -> None:
        if busy:
            busy.pop()
            raise NotExecuted("busy")

    shop.hooked(before=busy_once)
    shop.run()
    for _ in range(3):
        due(shop)
        shop.run()
    assert sorted(shop.calls("stock.unreserve")) == [f"{first}:undo", f"{second}:undo"]
