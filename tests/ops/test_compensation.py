"""Undoing a proposal whose later action the provider refused."""

from __future__ import annotations

from pathlib import Path

from tests.ops import toy
from tests.ops.test_pass import run_pass
from tests.postgres import Database


def test_a_refusal_before_the_pivot_undoes_what_was_done(database: Database, tmp_path: Path) -> None:
    """The reservation is done, the refund refused: the reservation is undone under its own key and nobody is told."""
    url, till = database.url(), toy.new_ledger(tmp_path)
    workflow = toy.toy_workflow(tmp_path, till)
    token = toy.principal(url, "shop", ["clerk"])
    toy.set_mood(till, "refuse", "order.refund")
    batch = toy.queue(url, workflow, token, {"one": {"order_id": "A1", "text": "TOTAL 20.00 EUR", "say": "saga"}})
    run_pass(url, workflow, batch)
    assert toy.states(url) == {"one": "compensated"}
    assert len(toy.effects_at(till, "stock.reserve")) == 1
    (undo,) = toy.effects_at(till, "stock.unreserve")
    assert undo.endswith("stock.reserve:1:undo")
    assert toy.effects_at(till, "customer.tell") == []


def test_a_refusal_after_the_pivot_undoes_nothing(database: Database, tmp_path: Path) -> None:
    """A bounced notification never takes back the reservation of a paid refund: a person looks at it."""
    url, till = database.url(), toy.new_ledger(tmp_path)
    workflow = toy.toy_workflow(tmp_path, till)
    token = toy.principal(url, "shop", ["clerk"])
    toy.set_mood(till, "refuse", "customer.tell")
    batch = toy.queue(url, workflow, token, {"one": {"order_id": "A1", "text": "TOTAL 20.00 EUR", "say": "saga"}})
    run_pass(url, workflow, batch)
    assert toy.states(url) == {"one": "dead_lettered"}
    assert len(toy.effects_at(till, "order.refund")) == 1
    assert toy.effects_at(till, "stock.unreserve") == []


def test_a_compensation_that_is_refused_goes_to_a_person(database: Database, tmp_path: Path) -> None:
    """Compensation is a business action that can fail by itself: it is parked, never taken for done."""
    url, till = database.url(), toy.new_ledger(tmp_path)
    workflow = toy.toy_workflow(tmp_path, till)
    token = toy.principal(url, "shop", ["clerk"])
    toy.set_mood(till, "refuse", "order.refund")
    toy.set_mood(till, "refuse", "stock.unreserve")
    batch = toy.queue(url, workflow, token, {"one": {"order_id": "A1", "text": "TOTAL 20.00 EUR", "say": "saga"}})
    run_pass(url, workflow, batch)
    assert toy.states(url) == {"one": "compensation_failed"}


def test_a_compensation_whose_answer_was_lost_is_looked_up(database: Database, tmp_path: Path) -> None:
    """A lost answer leaves the undo unknown; it is found by its key and not sent twice."""
    url, till = database.url(), toy.new_ledger(tmp_path)
    workflow = toy.toy_workflow(tmp_path, till)
    token = toy.principal(url, "shop", ["clerk"])
    toy.set_mood(till, "refuse", "order.refund")
    toy.set_mood(till, "lose the answer", "stock.unreserve")
    batch = toy.queue(url, workflow, token, {"one": {"order_id": "A1", "text": "TOTAL 20.00 EUR", "say": "saga"}})
    run_pass(url, workflow, batch)
    assert toy.states(url) == {"one": "compensating"}
    toy.make_due(url)
    run_pass(url, workflow, batch, "run-2")
    assert toy.states(url) == {"one": "compensated"}
    assert len(toy.calls_at(till, "stock.unreserve")) == 1
