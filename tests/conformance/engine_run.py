"""One run of the suite as our engine sees it: requests of one workflow, what people do with them, and passes."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from agentbarrier import ActionRequest, RunStatus

from ops.batch import Batch, Counts, WorkflowRun, open_pass
from ops.process_batch import STEPS
from policies.edits import Change
from policies.states import PARKED, TERMINAL
from resources.store import operator
from resources.store.edits import Edited, edit_proposal
from resources.store.inbox import Asked, find_asked, waiting_approvals
from resources.store.intake import submit_rows
from resources.store.reading import reading
from resources.store.votes import Vote, cast_vote
from tests.conformance.grouping import Grouping
from tests.conformance.house import House
from tests.conformance.receipts import time_was_over
from tests.conformance.sentinel import (
    CALL_SECONDS,
    Books,
    GatedWrite,
    as_suite_action,
    obedient_model,
    plan_of,
    sentinel_workflow,
)
from tests.conformance.story import ActionOf, Story, read_story

RESTING = frozenset(state.value for state in TERMINAL | PARKED)
STANDING = """
select r.id, r.state, r.cancel_requested_at is not null as cancelling,
    r.state in ('received', 'proposal_ready') or (r.state = 'awaiting_approval' and r.approval_id is null) as undecided,
    exists (select from effects e where e.request_id = r.id and e.state = 'unknown') as unknown
from requests r where r.workflow = :workflow
"""


@dataclass
class EngineRun:
    """One workflow with the requests of one run; everything here blocks, so the adapter calls it in threads."""

    house: House
    actions: Sequence[ActionRequest]
    books: Books
    grouping: Grouping
    model: Callable[[Any], Any] = obedient_model

    def __post_init__(self) -> None:
        name = f"sentinel_{next(self.house.numbers)}"
        folder = self.house.folder / name
        folder.mkdir()
        self.workflow = sentinel_workflow(name, folder, self.books, self.model)
        self._batch = ""

    def submit(self, suffix: str = "") -> None:
        """Submit the run's requests; submitting them again stores nothing."""
        rows = [
            {"operation_id": group[0].action_id + suffix, "payload": {"plan": plan_of(group)}}
            for group in self.grouping(self.actions)
        ]
        submitted = submit_rows(rows, workflow=self.workflow, principal=self.house.agent, database_url=self.house.url)
        submitted.raise_for_problems()
        self._batch = submitted.receipts[0].batch_key

    def one_pass(self, steps: Sequence[Callable[[Batch], Counts]] = STEPS) -> None:
        """One pass of a new Dagster run."""
        run = WorkflowRun(self.workflow, self.house.url, lease_seconds=CALL_SECONDS + 2)
        opened = open_pass(run, self._batch, f"run-{uuid.uuid4()}")
        for step in steps:
            opened.carry_out(step)

    def let_time_pass(self) -> None:
        """Let every wait be over, and every call that may still be under way."""
        of_this = "in (select id from requests where workflow = :workflow)"
        name = {"workflow": self.workflow.name}
        self.house.execute(f"update requests set next_eligible_at = received_at where id {of_this}", **name)
        self.house.execute(
            f"update effects set started_at = first_sent_at - interval '1 h' where request_id {of_this}", **name
        )

    def standing(self) -> Sequence[sa.Row[Any]]:
        """Where each request stands."""
        with reading(self.house.url, seconds=10) as connection:
            return connection.execute(sa.text(STANDING), {"workflow": self.workflow.name}).all()

    def at_rest(self) -> bool:
        """Whether nothing goes on by itself: each request ended, waits for an operator, or has an effect to look up."""
        return all(one.state in RESTING or (one.unknown and not one.cancelling) for one in self.standing())

    def decided_upon(self) -> bool:
        """Whether policy has spoken on each request, and whoever must decide has been asked."""
        standing = self.standing()
        return bool(standing) and not any(one.undecided for one in standing)

    def asked(self) -> dict[str, Asked]:
        """What people are asked now, by the suite's ids of the actions that they decide on."""
        waiting = waiting_approvals(self.house.reviewer_url, workflow=self.workflow.name)
        found = [find_asked(self.house.reviewer_url, str(one.approval_id)) for one in waiting]
        return {
            action.action_id: asked
            for asked in found
            if asked is not None and asked.outcome == "open"
            for action in self.pending_in(asked).values()
        }

    def pending_in(self, asked: Asked) -> dict[str, ActionRequest]:
        """The suite's actions that a review document asks about, as it shows them, by our ids of them."""
        return {
            action.action_id: as_suite_action(action.parameters, gated=True)
            for action in ActionOf.all_in(asked.document)
            if action.type == GatedWrite.action_type.name
        }

    def vote(self, asked: Asked, vote: Vote, reason: str = "") -> None:
        """The vote of the first lead who may decide: the second where the first edited what is asked."""
        lead = self.house.leads[1 if ActionOf.all_in(asked.document)[0].revision > 1 else 0]
        cast_vote(
            self.house.reviewer_url,
            lead,
            approval_id=asked.approval_id,
            vote=vote,
            proposal_hash=asked.proposal_hash,
            review_hash=asked.review_hash,
            reason=reason,
        )

    def edit(self, asked: Asked, replacement: ActionRequest) -> None:
        """Let the first lead put other arguments in the place of those that are asked about."""
        [ours] = [mine for mine, action in self.pending_in(asked).items() if action.action_id == replacement.action_id]
        changes = [Change(ours, name, str(value)) for name, value in replacement.arguments.items()]
        made = edit_proposal(
            self.house.reviewer_url, self.house.leads[0], asked, self.workflow, changes, "the reviewer knows better"
        )
        assert isinstance(made, Edited), made

    def cancel(self, reason: str) -> None:
        """Let the operator cancel whatever goes on."""
        for one in self.standing():
            if one.state not in RESTING:
                operator.cancel(self.house.operator_url, self.house.operator, one.id, reason)

    def stories(self) -> list[Story]:
        """The ledger of each request."""
        return [read_story(self.house.url, one.id) for one in self.standing()]

    def status(self) -> RunStatus | None:
        """How the run ended; None: it goes on. A request that was rejected ended as it should."""
        standing = self.standing()
        states = {one.state for one in standing}
        if any(one.unknown for one in standing):
            return RunStatus.UNKNOWN
        if not states <= RESTING:
            return None
        if "cancelled" in states:
            return RunStatus.TIMED_OUT if time_was_over(self.stories()) else RunStatus.CANCELLED
        return RunStatus.COMPLETED if states <= {"completed", "rejected"} else RunStatus.FAILED
