"""Requests that wait for a vote, the votes, and the seconds from each vote to its effect by the database's clock."""

from __future__ import annotations

import time
import uuid
from collections import defaultdict
from collections.abc import Sequence

import psycopg

from benchmarks.resume_definitions import WORKFLOWS
from benchmarks.workflow import ROLE
from ops.batch import WorkflowRun, open_pass
from ops.process_batch import STEPS
from resources.store.inbox import find_asked, waiting_approvals
from resources.store.intake import submit_rows
from resources.store.principals import create_principal
from resources.store.votes import cast_vote, sign_in

PATIENCE_SECONDS = 90.0

_TIMES = """
select v.approval_id, extract(epoch from v.cast_at)::float8, extract(epoch from e.outcome_at)::float8
from failsafe.approval_votes v
join failsafe.approval_requests a on a.id = v.approval_id
left join failsafe.effects e on e.request_id = a.request_id and e.state = 'done'
where v.approval_id = any (%s)
"""

_PREPARING = "prepare-"

_RUNS = """
select count(*), count(*) filter (where closed_at is null) from failsafe.batch_runs where run_id not like %s
"""


class TooSlow(Exception):
    """A vote was not carried out within the patience of the measurement."""


class Votes:
    """One reviewer and what waits for them."""

    def __init__(self, database_url: str, connection: psycopg.Connection[tuple[object, ...]]) -> None:
        self._url = database_url
        self._connection = connection
        self._session = sign_in(
            database_url, create_principal(database_url, kind="human", name="lead", roles=["lead"]).token
        )
        self._waiting: dict[str, list[uuid.UUID]] = defaultdict(list)

    def prepare(self, each: int) -> None:
        """Bring so many requests of every workflow to where they wait for a vote, without Dagster."""
        clerk = create_principal(self._url, kind="service", name="clerk", roles=[ROLE]).token
        for workflow in WORKFLOWS:
            rows = [
                {"operation_id": f"order-{number}", "payload": {"order": f"order-{number}", "amount": "60.00 EUR"}}
                for number in range(each)
            ]
            submission = submit_rows(rows, workflow=workflow, principal=clerk, database_url=self._url)
            submission.raise_for_problems()
            for batch in {receipt.batch_key for receipt in submission.receipts}:
                opened = open_pass(WorkflowRun(workflow, self._url), batch, f"{_PREPARING}{workflow.name}-{batch}")
                for step in STEPS:
                    opened.carry_out(step)
        for one in waiting_approvals(self._url):
            self._waiting[one.workflow].append(one.approval_id)

    def cast(self, workflow: str) -> uuid.UUID:
        """Approve one that waits; returns the approval request, committed."""
        approval_id = self._waiting[workflow].pop()
        asked = find_asked(self._url, str(approval_id))
        assert asked is not None
        cast_vote(
            self._url,
            self._session,
            approval_id=approval_id,
            vote="approve",
            proposal_hash=asked.proposal_hash,
            review_hash=asked.review_hash,
        )
        return approval_id

    def carried_out(self, approvals: Sequence[uuid.UUID]) -> list[tuple[float, float]]:
        """When each vote was cast and when its effect was committed, once all are.

        Raises:
            TooSlow: one was not within 90 s.
        """
        give_up = time.monotonic() + PATIENCE_SECONDS
        while True:
            rows = self._connection.execute(_TIMES, [list(approvals)]).fetchall()
            if len(rows) == len(approvals) and all(done is not None for _, _, done in rows):
                return [(float(str(cast)), float(str(done))) for _, cast, done in rows]
            if time.monotonic() > give_up:
                missing = sum(done is None for _, _, done in rows)
                raise TooSlow(
                    f"{missing} of {len(approvals)} votes were not carried out within {PATIENCE_SECONDS:.0f} s"
                )
            time.sleep(0.2)

    def runs(self) -> int:
        """Runs that have opened a batch so far, once all of them have ended."""
        give_up = time.monotonic() + PATIENCE_SECONDS
        while True:
            row = self._connection.execute(_RUNS, [f"{_PREPARING}%"]).fetchone()
            assert row is not None
            count, open_runs = int(str(row[0])), int(str(row[1]))
            if not open_runs or time.monotonic() > give_up:
                return count
            time.sleep(0.2)
