"""What an adapter saw when it was decided on must be so when it is carried out."""

from __future__ import annotations

from pathlib import Path

import pytest

from ops import rechecking
from ops.execute import execute
from policies.actions import Action
from policies.attempts import MAX_ATTEMPTS
from tests.ops.passes import Shop, refund
from tests.ops.tills import HookedTill

PAUSE = (
    "insert into pauses (scope, name, paused_by, reason)"
    " select :scope, :name, id, 'a test' from principals where name = 'shop'"
)


class WatchedTill(HookedTill):
    """A till that can be looked into: what its drawers hold is what a refund and a reservation rest on."""

    drawers: str

    def snapshot(self, action: Action) -> str | None:
        name = action.action_type.name
        return None if name == "customer.tell" else Path(self.drawers, name).read_text()


class DrawerPerOrder(WatchedTill):
    """A till with a drawer for each order."""

    def snapshot(self, action: Action) -> str | None:
        return Path(self.drawers, f"order.refund {action.model_dump()['order_id']}").read_text()


class Drawer:
    """What lies outside of our store."""

    def __init__(self, shop: Shop) -> None:
        self._folder = shop.folder / "drawers"
        self._folder.mkdir()
        self.holds("100 EUR")
        self.holds("3 left", "stock.reserve")
        shop.use(WatchedTill(file=str(shop.till), drawers=str(self._folder)))

    def holds(self, what: str, action_type: str = "order.refund") -> None:
        """Somebody changed it."""
        (self._folder / action_type).write_text(what)

    def jams(self) -> None:
        """It cannot be looked into."""
        (self._folder / "order.refund").unlink()


@pytest.fixture
def drawer(shop: Shop) -> Drawer:
    """The drawer of the shop's till."""
    return Drawer(shop)


def approve(shop: Shop, amount: str = "80.00", **more: str) -> None:
    """A request is asked about and approved."""
    shop.queue({"one": refund(amount, **more)})
    shop.run()
    shop.vote("one")


def stored(shop: Shop) -> object:
    """The snapshots of the latest assessment."""
    return shop.row("select snapshots from assessments order by created_at desc limit 1").snapshots


def test_what_is_unchanged_is_carried_out(shop: Shop, drawer: Drawer) -> None:
    """The fingerprint is kept with the assessment, by action."""
    approve(shop)
    assert stored(shop) == {"1:order.refund": "100 EUR"}
    shop.run()
    assert shop.states() == {"one": "completed"}
    assert len(shop.calls()) == 1


def test_what_changed_since_is_asked_about_anew(shop: Shop, drawer: Drawer) -> None:
    """The approval is stale, the reason names both states, and only new votes on the new state release it."""
    approve(shop)
    drawer.holds("5 EUR")
    shop.run(execute)
    sent_back = shop.request("one")
    assert (sent_back.state, sent_back.round, sent_back.approval_id) == ("proposal_ready", 2, None)
    assert "it was '100 EUR', now it is '5 EUR'" in sent_back.reason
    [why] = [payload["reason"] for kind, payload in shop.ledger("one") if kind == "approval.stale"]
    assert why == sent_back.reason
    shop.run()
    assert shop.states() == {"one": "awaiting_approval"}
    assert shop.calls() == []
    assert stored(shop) == {"1:order.refund": "5 EUR"}
    shop.vote("one")
    shop.run()
    assert shop.states() == {"one": "completed"}
    assert len(shop.calls()) == 1
    shop.assert_ledger_intact()


def test_a_change_that_was_taken_back_is_none(shop: Shop, drawer: Drawer) -> None:
    """States are compared, not moments."""
    approve(shop)
    drawer.holds("5 EUR")
    drawer.holds("100 EUR")
    shop.run()
    assert shop.states() == {"one": "completed"}


def test_what_cannot_be_read_before_the_effect_waits_and_is_never_carried_out(shop: Shop, drawer: Drawer) -> None:
    """It waits, and goes to a person when it has waited often enough."""
    approve(shop)
    drawer.jams()
    shop.run()
    waiting = shop.request("one")
    assert (waiting.state, waiting.attempts) == ("executing", 1)
    assert "1:order.refund rests on was not read: FileNotFoundError" in waiting.reason
    shop.run_again(MAX_ATTEMPTS - 1)
    assert shop.states() == {"one": "dead_lettered"}
    assert shop.calls() == []


def test_what_can_be_read_again_goes_on(shop: Shop, drawer: Drawer) -> None:
    """An outage costs time and nothing else."""
    approve(shop)
    drawer.jams()
    shop.run()
    drawer.holds("100 EUR")
    shop.run_again()
    assert shop.states() == {"one": "completed"}
    assert len(shop.calls()) == 1


def test_what_cannot_be_read_is_not_decided_on(shop: Shop, drawer: Drawer) -> None:
    """Neither released by itself nor asked about; each waits with the reason and an attempt, and goes on later."""
    shop.queue({"auto": refund("20.00"), "asked": refund("80.00", order="A2")})
    drawer.jams()
    counts = shop.run()
    assert counts["postponed"] == 2
    assert set(shop.states().values()) == {"proposal_ready"}
    assert shop.count("assessments") == 0
    waiting = shop.request("asked")
    assert waiting.attempts == 1
    assert "1:order.refund rests on was not read: FileNotFoundError" in waiting.reason
    assert (waiting.next_eligible_at - waiting.received_at).total_seconds() > 0
    drawer.holds("100 EUR")
    shop.run_again()
    assert shop.states() == {"auto": "completed", "asked": "awaiting_approval"}


def test_what_can_never_be_read_goes_to_a_person(shop: Shop, drawer: Drawer) -> None:
    """A decision that cannot be made is not put off for ever, and what can be read meanwhile is not held up by it."""
    drawer.holds("100 EUR", "order.refund A2")
    shop.use(DrawerPerOrder(file=str(shop.till), drawers=str(shop.folder / "drawers")))
    shop.queue({"one": refund(order="A1"), "other": refund(order="A2")})
    shop.run_again(MAX_ATTEMPTS - 1)
    assert shop.states() == {"one": "proposal_ready", "other": "completed"}
    shop.run_again()
    assert shop.states() == {"one": "dead_lettered", "other": "completed"}
    assert "1:order.refund rests on was not read: FileNotFoundError" in shop.request("one").reason
    assert shop.row("select step from dead_letters").step == "assess"
    assert len(shop.calls()) == 1
    shop.assert_ledger_intact()


def test_what_was_released_by_itself_and_waited_is_compared_as_well(shop: Shop, drawer: Drawer) -> None:
    """A retry later on another state is judged anew."""
    shop.queue({"one": refund("20.00")})
    shop.execute(PAUSE, scope="everything", name="*")
    shop.run()
    assert shop.states() == {"one": "executing"}
    drawer.holds("5 EUR")
    shop.execute("delete from pauses")
    shop.execute("update requests set rechecked_until = clock_timestamp()")
    shop.run_again()
    assert "approval.stale" in shop.events("one")
    assert shop.states() == {"one": "completed"}
    assert len(shop.calls()) == 1


@pytest.mark.parametrize("changed", ["stock.reserve", "order.refund"])
def test_what_was_begun_is_not_compared_but_what_comes_after_it_is(shop: Shop, drawer: Drawer, changed: str) -> None:
    """An action may change what it rested on. A change under the next one calls a person, since something was done."""
    approve(shop, say="saga")
    assert set(stored(shop)) == {"1:stock.reserve", "2:order.refund"}  # type: ignore[call-overload]
    shop.execute(PAUSE, scope="action_type", name="order.refund")
    shop.run()
    assert len(shop.calls("stock.reserve")) == 1
    drawer.holds("something else", changed)
    shop.execute("delete from pauses")
    shop.execute("update requests set rechecked_until = clock_timestamp()")
    shop.run_again()
    assert shop.states() == {"one": "completed" if changed == "stock.reserve" else "dead_lettered"}
    assert len(shop.calls()) == (changed == "stock.reserve")


def test_without_snapshots_none_is_stored_or_compared(shop: Shop) -> None:
    """Adapters that take none cost nothing."""
    approve(shop)
    assert stored(shop) is None
    shop.run()
    assert shop.states() == {"one": "completed"}


def test_an_assessment_without_a_snapshot_is_not_held_against_the_request(shop: Shop, drawer: Drawer) -> None:
    """An adapter that takes them since yesterday does not make yesterday's approvals stale."""
    approve(shop)
    shop.execute("update assessments set snapshots = null")
    shop.run()
    assert shop.states() == {"one": "completed"}


@pytest.mark.parametrize("what", ["", "x" * 201, "a\0b"])
def test_what_is_no_fingerprint_is_as_good_as_unread(shop: Shop, drawer: Drawer, what: str) -> None:
    """Nothing is decided on a snapshot that could not be compared or stored."""
    shop.queue({"one": refund()})
    drawer.holds(what)
    shop.run()
    assert shop.states() == {"one": "proposal_ready"}


def test_what_is_read_slowly_goes_on_in_portions(shop: Shop, drawer: Drawer, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was read first is carried out before it is too old, the others after it, in the same pass."""
    monkeypatch.setattr(rechecking, "READ_WINDOW", 0.0)
    shop.queue({f"no{number}": refund("80.00", order=f"A{number}") for number in range(4)})
    shop.run()
    for number in range(4):
        shop.vote(f"no{number}")
    shop.run(execute)
    assert set(shop.states().values()) == {"completed"}
    starts = shop.rows("select distinct started_at from effects where action_type = 'order.refund'")
    assert len(starts) > 1


def test_what_was_read_long_ago_starts_nothing(shop: Shop, drawer: Drawer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A judgement is as old as what it was made by; where reading takes too long a person learns of it."""
    approve(shop)
    monkeypatch.setattr(rechecking, "TOO_OLD", 0.0)
    shop.run(execute)
    waiting = shop.request("one")
    assert (waiting.state, waiting.attempts, waiting.rechecked_until) == ("executing", 1, None)
    assert "s to read; after 0 s it is too old" in waiting.reason
    assert shop.calls() == []
    monkeypatch.undo()
    shop.run_again()
    assert shop.states() == {"one": "completed"}
