"""Several tries of one action, one of them late: each has its own undo, and no answer counts for another."""

from __future__ import annotations

from typing import Any

import pytest

from ops.reconcile import reconcile
from policies.errors import NotExecuted, NotPossibleNow
from policies.states import State
from resources.store.cases import unclear_effects
from resources.store.effects import sweep_leases
from resources.store.engine import Duty, engine_for, transaction
from resources.store.late_undos import late_undos
from resources.store.pauses import Scope
from resources.store.stuck import stuck_work
from tests.operator.desk import Desk
from tests.operator.test_dead_letters import no_answer, standing, use_up_attempts
from tests.operator.test_late_reports import HAPPENED, report
from tests.operator.test_late_undo import due, late_reservation, undo
from tests.operator.test_second_tries import second_try_waits
from tests.operator.test_unknown import key_of
from tests.ops import toy
from tests.ops.passes import Shop, refund


def passes(shop: Shop, number: int) -> None:
    """Everything that waits is due, and no breaker is open."""
    for _ in range(number):
        due(shop)
        shop.execute("update providers set open_until = null")
        shop.run_again()


def undo_unheard(shop: Shop, desk: Desk) -> tuple[str, str]:
    """The first try came late and its undo was sent, of which nothing was heard; the keys of both tries."""
    first, second = second_try_waits(shop, desk)
    undo(shop, desk, first)
    toy.set_mood(shop.till, "lose the answer", "stock.unreserve")
    shop.run(reconcile)
    assert shop.calls("stock.unreserve") == [f"{first}:undo"]
    toy.set_mood(shop.till, None, "stock.unreserve")
    return first, second


def fenced_first_try(shop: Shop, desk: Desk) -> tuple[str, str]:
    """The first try was given up by hand; the keys of both, the second not yet begun."""
    shop.hooked(before=no_answer, look_up=no_answer)
    shop.queue({"one": refund(say="saga")})
    use_up_attempts(shop)
    first = key_of(desk, "stock.reserve")
    desk.resolve(first, done=False)
    return first, first.removesuffix("1") + "2"


@pytest.mark.parametrize("done", [True, False])
def test_a_late_effect_is_not_resolved_while_its_undo_is_unknown(shop: Shop, desk: Desk, done: bool) -> None:
    """Whether it stands depends on that; once it is known, the second try goes its own way."""
    first, second = undo_unheard(shop, desk)
    with pytest.raises(NotPossibleNow, match="see first what becomes of that"):
        desk.resolve(first, done=done)
    passes(shop, 4)
    assert second in shop.effects("stock.reserve")
    assert shop.states() == {"one": "completed"}


def test_an_undo_that_was_found_done_is_not_taken_for_an_action(shop: Shop, desk: Desk) -> None:
    """Even where the late effect itself is settled by then."""
    first, _ = undo_unheard(shop, desk)
    shop.execute("update effects set state = 'fenced', undo_due_at = null where idempotency_key = :key", key=first)
    shop.age_effects()
    toy.make_due(shop.url)
    shop.run(reconcile)
    assert shop.states() == {"one": "executing"}


def test_what_is_compensated_meanwhile_has_its_own_undo(shop: Shop, desk: Desk) -> None:
    """The first try turns out to have happened while the second one is about to be undone: both are."""
    first, second = fenced_first_try(shop, desk)
    toy.set_mood(shop.till, "refuse", "order.refund")

    def during(key: str) -> None:
        if "order.refund" in key:
            report(shop, first, HAPPENED)
            undo(shop, desk, first)

    shop.hooked(before=during)
    desk.redrive("one")
    shop.run()
    shop.hooked()
    passes(shop, 4)
    assert second in shop.effects("stock.reserve")
    assert sorted(shop.calls("stock.unreserve")) == [f"{first}:undo", f"{second}:undo"]


def test_a_wish_that_comes_while_another_is_carried_out_is_not_mixed_with_it(
    shop: Shop, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both tries came late; the second is to be undone just as a run has taken the first one up."""
    first, second = fenced_first_try(shop, desk)
    desk.redrive("one")
    use_up_attempts(shop)
    desk.resolve(second, done=False)
    for key in (first, second):
        report(shop, key, HAPPENED, reference=f"ref-{key[-1]}")
    undo(shop, desk, first)
    asked: list[str] = []

    def then_asked(*arguments: Any) -> Any:
        rows = late_undos(*arguments)
        if not asked:
            asked.append(second)
            undo(shop, desk, second)
        return rows

    monkeypatch.setattr("ops.late_undo.late_undos", then_asked)
    shop.hooked()
    shop.run()
    passes(shop, 3)
    assert shop.calls("stock.unreserve") == [f"{first}:undo", f"{second}:undo"]
    undone = shop.rows("select error from effects where kind = 'forward' and action_type = 'stock.reserve'")
    assert [row.error for row in undone] == ["undone", "undone"]


def test_an_undo_that_was_given_up_unknown_waits_for_a_person(shop: Shop, desk: Desk) -> None:
    """No run asks for it any more, and the list says so."""
    first, _ = undo_unheard(shop, desk)
    shop.hooked(look_up=no_answer)
    passes(shop, 12)
    shop.hooked(look_up=lambda key: pytest.fail(f"{key} was looked up"))
    passes(shop, 2)
    assert {one.key: one.waits_for for one in unclear_effects(shop.url)} == {first: "person", f"{first}:undo": "person"}


def test_what_was_discarded_stays_as_it_is(shop: Shop, desk: Desk) -> None:
    """Discarding said that the late effect is left done, so the wish to have it undone is over."""
    key = late_reservation(shop, desk)
    desk.pause(Scope.EVERYTHING)
    undo(shop, desk, key)
    shop.run()
    [left] = desk.discard("one")
    assert (left.obstacle, left.left_done, standing(shop)) == (None, [key], 0)
    desk.resume(Scope.EVERYTHING)
    passes(shop, 1)
    assert shop.calls("stock.unreserve") == []


def test_a_death_before_its_undo_is_due_is_not_its_own(shop: Shop, desk: Desk) -> None:
    """Whoever died had the request's other work in hand."""
    first, _ = second_try_waits(shop, desk)
    undo(shop, desk, first)
    shop.execute("update effects set undo_due_at = clock_timestamp() + interval '1 h' where undo_due_at is not null")
    toy.make_due(shop.url)
    assert len(desk.claimed(State.EXECUTING).requests) == 1
    shop.end_leases()
    with transaction(engine_for(Duty.WORKER, shop.url)) as connection:
        assert sweep_leases(connection, shop.workflow.name, shop.batch, 10) == 1
    assert shop.row("select max(undo_attempts) from effects")[0] == 0


def test_a_late_undo_that_is_held_is_reported(shop: Shop, desk: Desk) -> None:
    """By the pause that holds it back, and after an hour by the check for stuck work, though its request has ended."""
    key = late_reservation(shop, desk)
    undo(shop, desk, key)
    assert desk.pause(Scope.EVERYTHING).held_back == 1
    shop.run()
    shop.execute("update effects set undo_asked_at = undo_asked_at - interval '2 h' where undo_asked_at is not null")
    with engine_for(Duty.AUDITOR, shop.url).connect() as connection:
        [stuck] = stuck_work(connection, shop.workflow.name, shop.batch, 5.0)
    assert (stuck.why, stuck.reason, stuck.oldest) == ("held", "the undo of what came late", ["one"])


def test_a_late_undo_is_not_put_off_beyond_its_day(shop: Shop, desk: Desk) -> None:
    """A provider that asks for a longer wait leaves it to a person."""
    key = late_reservation(shop, desk)
    undo(shop, desk, key)

    def busy(_key: str) -> None:
        raise NotExecuted("busy", retry_after=1e12)

    shop.hooked(before=busy)
    shop.run()
    assert "would be more than a day after it was asked for" in desk.open_cases()[0]
    assert [one.waits_for for one in unclear_effects(shop.url)] == ["person"]


def test_the_latest_of_many_failures_stands_in_the_case(shop: Shop, desk: Desk) -> None:
    """A case keeps what fits; the whole story is in the ledger."""
    late_reservation(shop, desk)
    for number in range(12):
        shop.execute("select open_case(id, 'late', :failure) from requests", failure=f"no {number}: {'x' * 300}")
    [case] = desk.open_cases()
    assert len(case) == 2000
    assert "no 11:" in case
