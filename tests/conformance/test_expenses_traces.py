"""The example from Dagster asset to provider, two reviewers included, and agentack on the ledger that it leaves."""

from __future__ import annotations

import json
from collections import Counter
from datetime import date
from itertools import groupby
from pathlib import Path

import dagster as dg
import pytest
import sqlalchemy as sa

from examples.expenses.definitions import defs, receipts
from examples.expenses.sample import Claim, claims
from resources.store.inbox import find_asked, waiting_approvals
from resources.store.principals import create_principal
from resources.store.reading import reading
from resources.store.votes import Session, cast_vote, sign_in
from tests.conformance.story import read_story
from tests.conformance.trace import demanded, judged, trace_of
from tests.examples.conftest import TOKENS, Sandbox, running_sandbox, sandbox
from tests.postgres import Database

__all__ = ["running_sandbox", "sandbox"]

KINDS = ("ordinary", "over the cap", "high", "far too high", "hostile", "old", "missing total")
EACH = 2


def some_claims() -> list[Claim]:
    """Two of each kind that matters here."""
    by_kind = sorted((one for one in claims(today=date(2026, 11, 29)) if one.kind in KINDS), key=lambda one: one.kind)
    return [one for _, group in groupby(by_kind, key=lambda one: one.kind) for one in list(group)[:EACH]]


def decide(url: str, sessions: list[Session]) -> None:
    """The reviewers decide on all that waits for them; of what one person may release they deny the first."""
    once = [waiting for waiting in waiting_approvals(url) if waiting.quorum == 1]
    for waiting in waiting_approvals(url):
        asked = find_asked(url, str(waiting.approval_id))
        assert asked is not None
        for session in sessions[: waiting.quorum]:
            cast_vote(
                url,
                session,
                approval_id=asked.approval_id,
                vote="deny" if waiting == once[0] else "approve",
                proposal_hash=asked.proposal_hash,
                review_hash=asked.review_hash,
            )


@pytest.fixture
def store(database: Database, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """The URL of a store; the environment is that of a code location with some claims to hand in."""
    url = database.url()
    intake = create_principal(url, kind="service", name="expense app", roles=["expense_intake"])
    file = tmp_path / "claims.jsonl"
    file.write_text("".join(json.dumps(one.row) + "\n" for one in some_claims()), encoding="ascii")
    for name, value in {
        **TOKENS,
        "SANDBOX_URL": sandbox.url,
        "FAILSAFE_DATABASE_URL": url,
        "FAILSAFE_LEASE_SECONDS": "5",
        "FAILSAFE_BACKOFF_SECONDS": "2",
        "EXPENSES_INTAKE_TOKEN": intake.token,
        "EXPENSES_FILE": str(file),
    }.items():
        monkeypatch.setenv(name, value)
    return url


def test_the_ledger_of_the_example_passes_as_traces(store: str, sandbox: Sandbox, tmp_path: Path) -> None:
    """Every claim that ended passes, whoever decided on it; the provider did what the traces say and no more."""
    before = len(sandbox.ledger()["rows"])
    people = [
        create_principal(store, kind="human", name=name, roles=["team_lead", "finance"]) for name in ("tess", "finn")
    ]
    sessions = [sign_in(store, person.token) for person in people]
    job = defs.resolve_job_def("expenses_process_batch")
    assert dg.materialize([receipts]).success
    with reading(store, seconds=10) as connection:
        [batch] = connection.execute(sa.text("select distinct batch_key from requests_v")).scalars()
    assert job.execute_in_process(partition_key=batch).success
    decide(store, sessions)
    assert job.execute_in_process(partition_key=batch).success

    with reading(store, seconds=10) as connection:
        ids = connection.execute(sa.text("select request_id, state from requests_v")).all()
    assert Counter(one.state for one in ids) == {"completed": 7, "rejected": 5, "needs_review": 2}
    verdicts: Counter[tuple[bool, str]] = Counter()
    ended = [story for one in ids if (story := read_story(store, one.request_id)).ended]
    for story in ended:
        policy = demanded(story)
        verdicts[bool(policy.require_approval_for), judged(trace_of(story), tmp_path, policy).status] += 1
    assert verdicts == {(True, "PASS"): 4, (False, "PASS"): 8}
    executed = [event for story in ended for event in trace_of(story) if event.type == "action_executed"]
    assert len(executed) == len(sandbox.ledger()["rows"]) - before
