"""One pass over a batch, from queue to effect, on a real database and a provider with a ledger of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlalchemy as sa

from ops.batch import WorkflowRun, open_pass
from ops.process_batch import STEPS
from resources.store.engine import Duty, engine_for
from resources.workflow import Workflow
from tests.ops import toy
from tests.postgres import Database


def run_pass(url: str, workflow: Workflow, batch: str, run_id: str = "run-1") -> None:
    """One pass by all steps."""
    opened = open_pass(WorkflowRun(workflow, url, lease_seconds=5), batch, run_id)
    for step in STEPS:
        opened.carry_out(step)


@pytest.fixture
def till(tmp_path: Path) -> Path:
    """The provider's own ledger."""
    return toy.new_ledger(tmp_path)


def test_each_request_ends_where_its_policy_says(database: Database, tmp_path: Path, till: Path) -> None:
    """Small refunds are paid at once, larger ones wait, too large ones and bad proposals are refused."""
    url = database.url()
    workflow = toy.toy_workflow(tmp_path, till)
    token = toy.principal(url, "shop", ["clerk"])
    batch = toy.queue(
        url,
        workflow,
        token,
        {
            "small": {"order_id": "A1", "text": "TOTAL 20.00 EUR"},
            "large": {"order_id": "A2", "text": "TOTAL 80.00 EUR"},
            "huge": {"order_id": "A3", "text": "TOTAL 800.00 EUR"},
            "gone": {"order_id": "gone", "text": "TOTAL 20.00 EUR"},
            "closed": {"order_id": "closed", "text": "TOTAL 20.00 EUR"},
            "unsure": {"order_id": "A4", "text": "TOTAL 20.00 EUR", "say": "abstain"},
            "broken": {"order_id": "A5", "text": "TOTAL 20.00 EUR", "say": "nonsense"},
            "saga": {"order_id": "A6", "text": "TOTAL 30.00 EUR", "say": "saga"},
        },
    )
    run_pass(url, workflow, batch)
    assert toy.states(url) == {
        "small": "completed",
        "large": "awaiting_approval",
        "huge": "rejected",
        "gone": "rejected",
        "closed": "rejected",
        "unsure": "needs_review",
        "broken": "needs_review",
        "saga": "completed",
    }
    assert len(toy.effects_at(till)) == 2
    run_pass(url, workflow, batch, "run-2")
    assert len(toy.calls_at(till)) == 2, "running it again repeats nothing"


def test_an_approved_refund_is_paid_once_and_a_denied_one_never(database: Database, tmp_path: Path, till: Path) -> None:
    """A vote bound to both hashes releases; the next pass pays; a denial ends the request at once."""
    url = database.url()
    workflow = toy.toy_workflow(tmp_path, till)
    token = toy.principal(url, "shop", ["clerk"])
    lead = toy.principal(url, "lena", ["lead"], kind="human")
    batch = toy.queue(
        url,
        workflow,
        token,
        {
            "yes": {"order_id": "A1", "text": "TOTAL 80.00 EUR"},
            "no": {"order_id": "A2", "text": "TOTAL 90.00 EUR"},
        },
    )
    run_pass(url, workflow, batch)
    with engine_for(Duty.REVIEWER, url).begin() as connection:
        secret = connection.execute(sa.text("select secret from sign_in(:token)"), {"token": lead}).scalar_one()
        for row in connection.execute(
            sa.text(
                "select v.approval_id, v.operation_id, a.proposal_hash, a.review_hash"
                " from approvals_v v join approval_requests a on a.id = v.approval_id"
            )
        ).all():
            connection.execute(
                sa.text("select * from cast_vote(:secret, :id, :vote, :proposal, :review, 'looked at it')"),
                {
                    "secret": secret,
                    "id": row.approval_id,
                    "vote": "approve" if row.operation_id == "yes" else "deny",
                    "proposal": row.proposal_hash,
                    "review": row.review_hash,
                },
            )
    assert toy.states(url) == {"yes": "executing", "no": "rejected"}
    run_pass(url, workflow, batch, "run-2")
    assert toy.states(url) == {"yes": "completed", "no": "rejected"}
    assert len(toy.effects_at(till)) == 1


def test_an_effect_whose_answer_was_lost_is_looked_up_and_adopted(
    database: Database, tmp_path: Path, till: Path
) -> None:
    """A time-out after the effect leaves it unknown; the next pass finds it by its key and never calls again."""
    url = database.url()
    workflow = toy.toy_workflow(tmp_path, till)
    token = toy.principal(url, "shop", ["clerk"])
    batch = toy.queue(url, workflow, token, {"one": {"order_id": "A1", "text": "TOTAL 20.00 EUR"}})
    toy.set_mood(till, "lose the answer")
    run_pass(url, workflow, batch)
    assert toy.states(url) == {"one": "executing"}
    toy.set_mood(till, None)
    with engine_for(Duty.WORKER, url).begin() as connection:
        connection.execute(sa.text("update requests set next_eligible_at = received_at"))
    run_pass(url, workflow, batch, "run-2")
    assert toy.states(url) == {"one": "completed"}
    assert len(toy.calls_at(till)) == 1
