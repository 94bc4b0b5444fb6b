"""The demo's story, one scene a method, told on standard error while it happens."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from console.example_home import REVIEWERS, ExampleHome, example_module
from console.process_group import ProcessGroups
from policies.errors import NotPermitted, StoreUnavailable
from resources.store.engine import Duty, engine_for, transaction
from resources.store.inbox import find_asked, waiting_approvals
from resources.store.intake import submit_rows
from resources.store.votes import Session, cast_vote, sign_in

DEFINITIONS = "examples.expenses.definitions"
WORKFLOW = "expenses"

KILL_AFTER = 60
"""Effects at the provider before the worker is killed: well under way and far from done."""

PATIENCE = 90.0
"""Seconds to wait for anything before the demo says that it did not happen."""


class DemoStory:
    """What happens in the demo, in order."""

    def __init__(self, home: ExampleHome, children: ProcessGroups, tell: Callable[[str], None]) -> None:
        self._home = home
        self._children = children
        self._tell = tell
        self._batch = ""
        self.kills = 0
        home.start_provider(children)

    def submit(self, receipts: Path | None, seed: int) -> None:
        """Hand the receipts in."""
        sample = example_module("sample")
        rows = sample.from_sroie(receipts) if receipts else sample.rows(seed, today=datetime.now(UTC).date())
        submission = submit_rows(
            rows,
            workflow=example_module("workflow").expenses,
            principal=os.environ["EXPENSES_INTAKE_TOKEN"],
            database_url=self._home.database_url,
        )
        again = submit_rows(
            rows[:20],
            workflow=example_module("workflow").expenses,
            principal=os.environ["EXPENSES_INTAKE_TOKEN"],
            database_url=self._home.database_url,
        )
        self._batch = submission.receipts[0].batch_key
        replayed = sum(receipt.replayed for receipt in again.receipts)
        self._tell(
            f"1  submitted {len(submission.receipts)} receipts into batch {self._batch}"
            f" ({replayed} of the first 20 sent twice: all replays, none doubled)"
        )
        for problem in submission.problems:
            self._tell(f"   row {problem.row} was refused at the door: {problem.field} {problem.reason}")

    def run_and_kill(self) -> None:
        """Run the job and SIGKILL its process while it sends effects."""
        worker = self._run_job("first-run")
        self._wait(lambda: len(self.provider_ledger()["rows"]) >= KILL_AFTER or worker.poll() is not None)
        self._children.kill(worker)
        self.kills += 1
        done = len(self.provider_ledger()["rows"])
        self._tell(f"2  ran the job and killed its process with SIGKILL after {done} effects; now {self._states()}")

    def run_again(self) -> None:
        """Run the job again; what was in flight is looked up by its key before anything else is sent."""
        self._start_daemon()
        time.sleep(float(os.environ["FAILSAFE_LEASE_SECONDS"]))  # a dead worker's leases run out by themselves
        worker = self._run_job("second-run")
        self._wait(lambda: worker.poll() is not None and self._count("executing") == 0)
        self._tell(f"3  ran it again; now {self._states()}")

    def decide(self) -> None:
        """Two reviewers decide some of what waits, each with a session of their own."""
        sessions = [
            sign_in(self._home.database_url, self._home.principal(name, "human", roles)) for name, roles in REVIEWERS
        ]
        votes = {"approve": 0, "deny": 0}
        waiting = waiting_approvals(self._home.database_url)
        for number, line in enumerate(waiting):
            if number % 4 == 3:
                continue  # some are left for tomorrow
            for session in sessions[: line.quorum]:
                vote = "deny" if number % 8 == 5 else "approve"
                votes[vote] += self._vote(session, line.approval_id, vote)
                if vote == "deny":
                    break
        self._tell(
            f"4  {len(waiting)} wait for people; two reviewers voted: "
            f"{votes['approve']} approvals, {votes['deny']} denials"
        )

    def _vote(self, session: Session, approval_id: Any, vote: Any) -> int:
        asked = find_asked(self._home.database_url, str(approval_id))
        if asked is None:
            return 0
        try:
            cast_vote(
                self._home.database_url,
                session,
                approval_id=approval_id,
                vote=vote,
                proposal_hash=asked.proposal_hash,
                review_hash=asked.review_hash,
                reason="looked at the receipt",
            )
        except NotPermitted:
            return 0
        return 1

    def let_the_sensor_finish(self) -> None:
        """Dagster's sensor sees the votes in Postgres and starts the run that carries them out."""
        self._wait(lambda: self._count("executing", "compensating", "received", "proposal_ready") == 0)
        self._tell(f"5  the sensor started the run that carried the votes out; now {self._states()}")

    def provider_ledger(self) -> dict[str, Any]:
        """What really happened, in the provider's own words."""
        import httpx  # costs a third of a second, which no other command should pay

        answer = httpx.get(
            f"{os.environ['SANDBOX_URL']}/ledger",
            headers={"Authorization": f"Bearer {os.environ['SANDBOX_ADMIN_TOKEN']}"},
            timeout=10,
        )
        ledger: dict[str, Any] = answer.raise_for_status().json()
        return ledger

    def _run_job(self, name: str) -> Any:
        return self._children.start(name, [sys.executable, "-m", "console.run_job", DEFINITIONS, WORKFLOW, self._batch])

    def _start_daemon(self) -> None:
        command = [sys.executable, "-m", "dagster._daemon", "run", "-m", DEFINITIONS]
        self._daemon = self._children.start("daemon", command)

    def _count(self, *states: str) -> int:
        with transaction(engine_for(Duty.AUDITOR, self._home.database_url)) as connection:
            count: int = connection.execute(
                sa.text("select count(*) from requests where state = any (:states)"), {"states": list(states)}
            ).scalar_one()
            return count

    def _states(self) -> str:
        with transaction(engine_for(Duty.AUDITOR, self._home.database_url)) as connection:
            rows = connection.execute(
                sa.text("select state, count(*) as n from requests group by 1 order by 2 desc")
            ).all()
        return ", ".join(f"{row.n} {row.state}" for row in rows)

    def _wait(self, happened: Callable[[], bool]) -> None:
        give_up = time.monotonic() + PATIENCE
        while not happened():
            if time.monotonic() > give_up:
                raise StoreUnavailable(
                    f"this took longer than {PATIENCE:.0f} s; read the logs in {self._home.folder / 'logs'}"
                )
            time.sleep(0.1)
