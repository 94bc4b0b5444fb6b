"""What `fs.testing.run` tells a user's test."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from policies.errors import RequestRefused
from policies.proposals import Proposal
from tests.ops import toy
from tests.postgres import Database
from workflow_assets import testing


def test_a_run_tells_what_became_of_each_request(empty_database: Database, tmp_path: Path) -> None:
    """Requests are submitted and advanced once, in order, on a database that needs no preparation."""
    workflow = toy.toy_workflow(tmp_path, toy.new_ledger(tmp_path))
    small, large = testing.run(
        workflow,
        [
            toy.RefundRequest(order_id="A1", text="TOTAL 20.00 EUR"),
            toy.RefundRequest(order_id="A2", text="TOTAL 80.00 EUR"),
        ],
        database_url=empty_database.url(),
    )
    assert (small.state, small.tier, small.decision) == ("completed", "low", "auto")
    assert [(effect.action_type, effect.state) for effect in small.effects] == [("order.refund", "done")]
    assert (large.state, large.tier, large.effects) == ("awaiting_approval", "medium", ())


def test_the_submitter_holds_the_roles_that_are_given(database: Database, tmp_path: Path) -> None:
    """Without a permitted role the policy refuses, as it would for a principal in production."""
    workflow = toy.toy_workflow(tmp_path, toy.new_ledger(tmp_path))
    request = toy.RefundRequest(order_id="A1", text="TOTAL 20.00 EUR")
    (outcome,) = testing.run(workflow, [request], database_url=database.url(), roles=["visitor"])
    assert outcome.state == "rejected"
    assert outcome.effects == ()


def test_a_dead_letter_is_an_outcome_like_any_other(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run ends red for the people who watch it; a test reads the state."""

    def broken(request: toy.RefundRequest) -> Proposal:
        raise RuntimeError("the model is away")

    monkeypatch.setattr("policies.attempts.MAX_ATTEMPTS", 1)
    workflow = replace(toy.toy_workflow(tmp_path, toy.new_ledger(tmp_path)), extractor=broken)
    request = toy.RefundRequest(order_id="A1", text="TOTAL 20.00 EUR")
    (outcome,) = testing.run(workflow, [request], database_url=database.url())
    assert outcome.state == "dead_lettered"
    assert outcome.reason is not None
    assert "the model is away" in outcome.reason


def test_requests_that_intake_would_refuse_are_refused(database: Database, tmp_path: Path) -> None:
    """A test cannot get past what production would not let in."""
    workflow = toy.toy_workflow(tmp_path, toy.new_ledger(tmp_path))
    request = toy.RefundRequest(order_id="A1", text="TOTAL 20.00 EUR")
    with pytest.raises(RequestRefused, match="subject"):
        testing.run(workflow, [request], database_url=database.url(), subject="s" * 500)
