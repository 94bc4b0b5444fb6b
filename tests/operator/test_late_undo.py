"""An effect that came late is undone when an operator wants it: once, under the undo's own key; nothing else moves."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import ClassVar

import pytest

from ops.reconcile import reconcile
from policies.errors import NotExecuted, NotPermitted, NotPossibleNow, RequestRefused
from policies.outcomes import Semantics
from resources.store.cases import unclear_effects
from resources.store.late_undos import ask_undo
from resources.store.pauses import Scope
from tests.console.conftest import Terminal
from tests.operator.desk import WHY, Desk
from tests.operator.test_dead_letters import standing
from tests.operator.test_late_reports import HAPPENED, fenced, report
from tests.operator.test_unknown import key_of
from tests.ops import toy
from tests.ops.passes import Shop, refund
from tests.ops.tills import HookedTill


def late_reservation(shop: Shop, desk: Desk) -> str:
    """A reservation that was refused, so that its request ended as failed, and that was made all the same."""
    toy.set_mood(shop.till, "refuse", "stock.reserve")
    shop.queue({"one": refund(say="saga")})
    shop.run()
    toy.set_mood(shop.till, None, "stock.reserve")
    assert shop.states() == {"one": "failed"}
    key = key_of(desk, "stock.reserve")
    report(shop, key, HAPPENED)
    return key


def undo(shop: Shop, desk: Desk, key: str) -> None:
    """Olga wants it undone."""
    ask_undo(shop.url, desk.session, key, WHY)


def due(shop: Shop) -> None:
    """Let the wait before the next try pass."""
    shop.execute("update effects set undo_due_at = clock_timestamp() where undo_due_at is not null")
    shop.age_effects()


def states(shop: Shop) -> dict[str, str]:
    """State of each effect of a reservation, by the end of its key."""
    rows = shop.rows("select kind, state from effects where action_type in ('stock.reserve', 'stock.unreserve')")
    return {row.kind: row.state for row in rows}


def test_a_late_effect_is_undone(shop: Shop, desk: Desk) -> None:
    """Its undo is sent once under its own key, the effect is settled, its case closed; the request stays failed."""
    key = late_reservation(shop, desk)
    assert desk.open_cases() == [
        f"{key} happened after it was refused; stock.unreserve undoes it (failsafe unknown undo)"
    ]
    before = shop.row("select state, state_seq, closed_at, reason from requests")
    undo(shop, desk, key)
    assert [one.waits_for for one in unclear_effects(shop.url)] == ["undo"]
    shop.run()
    shop.run()
    assert shop.calls("stock.unreserve") == [f"{key}:undo"]
    assert states(shop) == {"forward": "fenced", "compensation": "done"}
    assert shop.row("select state, state_seq, closed_at, reason from requests") == before
    assert (standing(shop), unclear_effects(shop.url)) == (0, [])
    assert shop.row("select resolution from dead_letters").resolution == f"undone: {key}"
    told = shop.events("one")[-4:]
    assert told == ["operator.undo_asked", "effect.started", "effect.done", "effect.late_undone"]
    assert shop.row("select lease_token from requests").lease_token is None
    shop.assert_ledger_intact()


def test_a_late_effect_of_an_earlier_intent_is_undone(shop: Shop, desk: Desk) -> None:
    """A redrive did it again under a new key, and it stands; the one that came late is the one that is undone."""
    toy.set_mood(shop.till, "refuse", "stock.reserve")
    shop.queue({"one": refund(say="saga")})
    shop.run()
    first = key_of(desk, "stock.reserve")
    shop.execute("alter table requests disable trigger user")
    shop.execute("update requests set state = 'dead_lettered', closed_at = null")
    shop.execute("alter table requests enable trigger user")
    toy.set_mood(shop.till, None, "stock.reserve")
    desk.redrive("one")
    shop.run_again()
    assert shop.states() == {"one": "completed"}
    report(shop, first, HAPPENED)
    undo(shop, desk, first)
    shop.run()
    assert shop.calls("stock.unreserve") == [f"{first}:undo"]
    assert shop.states() == {"one": "completed"}
    kept = shop.rows("select intent, state from effects where action_type = 'stock.reserve' order by intent")
    assert kept == [(1, "fenced"), (2, "done")]


@pytest.mark.parametrize("lost", ["answer", "worker"])
def test_an_undo_of_which_nothing_is_heard_is_looked_up(shop: Shop, desk: Desk, lost: str) -> None:
    """An answer that is lost, or a worker that dies in the call: found done, it is not sent again."""
    key = late_reservation(shop, desk)
    undo(shop, desk, key)
    shop.hooked(after=silent if lost == "answer" else dying)
    if lost == "worker":
        with pytest.raises(KeyboardInterrupt):
            shop.run()
        shop.end_leases()
    else:
        shop.run()
    shop.hooked()
    shop.run()
    due(shop)
    shop.run()
    assert shop.calls("stock.unreserve") == [f"{key}:undo"]
    assert states(shop) == {"forward": "fenced", "compensation": "done"}
    assert shop.states() == {"one": "failed"}


def silent(_key: str) -> None:
    """No answer comes."""
    raise TimeoutError("no answer")


def dying(_key: str) -> None:
    """The worker is ended."""
    raise KeyboardInterrupt


def test_an_undo_that_is_not_taken_now_is_tried_later(shop: Shop, desk: Desk) -> None:
    """Not before its time, and not for ever."""
    key = late_reservation(shop, desk)
    undo(shop, desk, key)
    tried: list[str] = []

    def busy(key: str) -> None:
        tried.append(key)
        raise NotExecuted("busy", retry_after=60)

    shop.hooked(before=busy)
    shop.run()
    shop.run()
    assert len(tried) == 1
    for _ in range(9):
        due(shop)
        shop.execute("update providers set open_until = null")
        shop.run()
    assert len(tried) == 8
    assert "was not undone: busy (attempt 8 of 8)" in desk.open_cases()[0]
    assert [one.waits_for for one in unclear_effects(shop.url)] == ["person"]


def test_an_undo_that_cannot_be_looked_up_is_a_persons_in_the_end(shop: Shop, desk: Desk) -> None:
    """Eight tries, the one that was sent among them; asked for once more, it is looked up once more."""
    key = late_reservation(shop, desk)
    undo(shop, desk, key)
    asked: list[str] = []

    def deaf(key: str) -> None:
        asked.append(key)
        raise TimeoutError("no answer")

    shop.hooked(after=silent, look_up=deaf)
    for _ in range(10):
        shop.run()
        due(shop)
    assert len(asked) == 7
    assert "was not undone: the look-up failed: TimeoutError" in desk.open_cases()[0]
    assert [one.waits_for for one in unclear_effects(shop.url)] == ["person", "person"]
    undo(shop, desk, key)
    shop.hooked()
    shop.run()
    assert (shop.calls("stock.unreserve"), states(shop)["forward"]) == ([f"{key}:undo"], "fenced")


@pytest.mark.parametrize(
    ("moment", "times", "why"),
    [("before", 7, "nothing shows of it"), ("look_up", 8, "9 attempts failed, or workers died on them")],
)
def test_an_undo_that_workers_die_on_is_a_persons_in_the_end(
    shop: Shop, desk: Desk, moment: str, times: int, why: str
) -> None:
    """It may be what kills them."""
    key = late_reservation(shop, desk)
    undo(shop, desk, key)
    died: list[str] = []

    def dying_and_counted(key: str) -> None:
        died.append(key)
        dying(key)

    if moment == "look_up":
        shop.hooked(after=silent)
        shop.run()
        due(shop)
    if moment == "before":
        shop.hooked(before=dying_and_counted)
    else:
        shop.hooked(look_up=dying_and_counted)
    for _ in range(25):
        with suppress(KeyboardInterrupt):
            shop.run()
        shop.end_leases()
        due(shop)
    assert len(died) == times
    assert why in desk.open_cases()[0]
    assert shop.request("one").lease_token is None


def test_what_the_provider_said_of_an_undo_is_kept_though_the_lease_was_lost(shop: Shop, desk: Desk) -> None:
    """Another worker has it by then; the answer is evidence, and the undo is looked up."""
    key = late_reservation(shop, desk)
    undo(shop, desk, key)

    def meanwhile(_key: str) -> None:
        shop.end_leases()
        shop.run(reconcile)

    shop.hooked(after=meanwhile)
    shop.run()
    assert "effect.late_report" in shop.events("one")
    shop.hooked()
    due(shop)
    shop.run()
    assert (shop.calls("stock.unreserve"), states(shop)["compensation"]) == ([f"{key}:undo"], "done")
    shop.assert_ledger_intact()


def test_an_undo_that_is_refused_is_a_persons_again(shop: Shop, desk: Desk) -> None:
    """The case says why; by hand it can still be settled."""
    key = late_reservation(shop, desk)
    undo(shop, desk, key)
    toy.set_mood(shop.till, "refuse", "stock.unreserve")
    shop.run()
    assert "was not undone: refused: declined" in desk.open_cases()[0]
    assert (shop.states(), standing(shop)) == ({"one": "failed"}, 1)
    desk.resolve(key, done=False)
    assert standing(shop) == 0


def test_a_pause_holds_the_undo_as_well(shop: Shop, desk: Desk) -> None:
    """It starts through the same door as every effect."""
    key = late_reservation(shop, desk)
    undo(shop, desk, key)
    desk.pause(Scope.ACTION_TYPE, "stock.unreserve")
    shop.run()
    assert shop.calls("stock.unreserve") == []
    desk.resume(Scope.ACTION_TYPE, "stock.unreserve")
    due(shop)
    shop.run()
    assert len(shop.calls("stock.unreserve")) == 1


@pytest.mark.parametrize("done", [True, False])
def test_it_is_resolved_by_hand_before_its_undo_or_after_but_not_meanwhile(shop: Shop, desk: Desk, done: bool) -> None:
    """While the undo is out nobody knows whether the effect stands; a person's word before it is sent ends the wish."""
    key = late_reservation(shop, desk)
    undo(shop, desk, key)
    refused: list[str] = []

    def meanwhile(_key: str) -> None:
        with pytest.raises(NotPossibleNow, match="its undo is under way"):
            desk.resolve(key, done=done)
        refused.append(key)
        raise NotExecuted("busy")

    shop.hooked(before=meanwhile)
    shop.run()
    assert refused == [key]
    desk.resolve(key, done=done)
    shop.hooked()
    shop.execute("update effects set undo_due_at = clock_timestamp() where undo_due_at is not null")
    shop.run()
    assert shop.calls("stock.unreserve") == []
    assert states(shop)["forward"] == ("done" if done else "fenced")


def test_a_blind_undo_is_sent_at_most_once(shop: Shop, desk: Desk) -> None:
    """Its answer lost, nobody can tell: a person must."""

    class Blind(HookedTill):
        semantics: ClassVar[Semantics] = Semantics()

    key = late_reservation(shop, desk)
    undo(shop, desk, key)
    shop.lease_seconds = 30.0
    shop.hooked(Blind, after=silent)
    for _ in range(3):
        shop.run()
        due(shop)
    assert len(shop.calls("stock.unreserve")) == 1
    assert "the provider cannot tell" in desk.open_cases()[0]


def test_only_an_operator_undoes_and_only_what_can_be(shop: Shop, desk: Desk) -> None:
    """Others are refused, and so is what nothing undoes, what is not late, and what is unknown."""
    first = fenced(shop, desk)
    with pytest.raises(NotPossibleNow, match="the effect is fenced"):
        undo(shop, desk, first)
    report(shop, first, HAPPENED)
    with pytest.raises(NotPossibleNow, match="nothing undoes it"):
        undo(shop, desk, first)
    with pytest.raises(RequestRefused):
        undo(shop, desk, "no such key")
    with pytest.raises(NotPermitted):
        ask_undo(shop.url, desk.signed_in("lena", ["lead"]), first, WHY)


def test_a_late_undo_by_the_command(shop: Shop, desk: Desk, tmp_path: Path) -> None:
    """`failsafe unknown undo` has it undone and says by what."""
    key = late_reservation(shop, desk)
    token = toy.principal(shop.url, "otto", ["operator"], kind="human")
    terminal = Terminal(shop.url, tmp_path)
    said = terminal.json("unknown", "undo", key, "--reason", WHY, token=token)
    assert said == {"key": key, "request_id": str(desk.id("one"))}
    assert "undo" in terminal.said("unknown", "list")
    shop.run()
    assert terminal.json("unknown", "list") == []


def test_a_batch_with_a_late_effect_to_undo_is_due(shop: Shop, desk: Desk) -> None:
    """Sensors start a run for it, though every request of the batch has ended."""
    key = late_reservation(shop, desk)
    reasons = "select reason from due_batches where reason = 'unknown_effect'"
    assert shop.rows(reasons) == []
    undo(shop, desk, key)
    assert shop.rows(reasons) == [("unknown_effect",)]
    shop.run()
    assert shop.rows(reasons) == []
