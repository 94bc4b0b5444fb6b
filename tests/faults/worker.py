"""Worker processes: they run passes as a run of the job does, and meet the failpoint that they are armed with."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path

from ops import batch as chunks
from ops.batch import WorkflowRun, open_pass
from ops.close_batch import close_batch
from ops.process_batch import STEPS
from ops.publishing import Publisher, publish_events
from policies.errors import StoreUnavailable
from resources import failpoints
from resources.failpoints import Failpoint
from resources.outbox.webhook import Webhook
from tests.faults.ledger import between_entries
from tests.faults.providers import BANK_URL
from tests.faults.workflow import orders_workflow

# A server that forks has the imports made once; forking this process itself would share its connections. What would be
# imported at the first connection or call costs a worker more than its pass.
_PROCESSES = multiprocessing.get_context("forkserver")
_PROCESSES.set_forkserver_preload(
    [__name__, "sqlalchemy.dialects.postgresql.psycopg", "resources.adapters.http_transport", "tests.outbox.receiver"]
)

# Starting a process asks after all others, and whoever is not the first to hear how one ended is told nonsense.
_one_at_a_time = threading.Lock()

PATIENCE = 60.0
"""Seconds within which a worker ends, or comes where it should stop."""

KILLED = -signal.SIGKILL
NO_STORE = 3
"""Exit code of a worker that could not go on for want of its database, as a failed run."""


@dataclass(frozen=True)
class Assignment:
    """What one worker process is told."""

    url: str
    bank_url: str
    folder: Path
    workflow: str
    batch: str
    lease_seconds: float
    seed: str
    failpoint: str = ""
    chunk: int = 500
    with_bank: bool = True
    keyed_url: str = ""
    publish_to: str = ""
    """Address of the receiver: publish the outbox instead of running a pass."""


class Worker:
    """A running worker process."""

    def __init__(self, assignment: Assignment) -> None:
        self._process: BaseProcess = _PROCESSES.Process(target=_work, args=(assignment,), daemon=True)
        self._code: int | None = None
        with _one_at_a_time:
            self._process.start()

    def end(self) -> int:
        """Wait for its end and return the exit code; one that hangs is killed, and that is an error.

        Raises:
            TimeoutError: it did not end.
        """
        hung = not wait([self._process.sentinel], PATIENCE)
        code = self.kill()
        if hung:
            raise TimeoutError("a worker hung")
        return code

    def kill(self) -> int:
        """End it, if it still runs, and return the exit code; again and again if need be."""
        if self._code is None:
            if not wait([self._process.sentinel], 0):  # its number may be somebody else's once it has ended
                with suppress(ProcessLookupError):
                    os.kill(self._pid, signal.SIGKILL)
                wait([self._process.sentinel])
            with _one_at_a_time:
                self._code = self._process.exitcode
                self._process.close()
        assert self._code is not None
        return self._code

    def stopped(self) -> bool:
        """Wait until it has stopped at its point; False: it ended without coming by."""
        give_up = time.monotonic() + PATIENCE
        while time.monotonic() < give_up:
            try:
                state = Path(f"/proc/{self._pid}/stat").read_text().rpartition(")")[2].split()[0]
            except (FileNotFoundError, ProcessLookupError):
                return False
            if state == "T":
                return True
            if state == "Z":
                return False
            time.sleep(0.005)
        raise TimeoutError("a worker neither stopped nor ended")

    def go_on(self) -> None:
        """Continue it."""
        os.kill(self._pid, signal.SIGCONT)

    @property
    def _pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid


def _work(assignment: Assignment) -> None:
    os.environ[BANK_URL] = assignment.bank_url
    random.seed(assignment.seed)
    chunks.CHUNK = assignment.chunk
    _arm(assignment.failpoint)
    work: Callable[[Assignment], None] = _publish if assignment.publish_to else _advance
    try:
        work(assignment)
    except StoreUnavailable:
        sys.exit(NO_STORE)


def _arm(failpoint: str) -> None:
    if not failpoint.endswith(":stop"):
        failpoints.arm(failpoint)
        return
    act = failpoints.watcher_for(failpoint)

    def stop_between_entries(point: Failpoint) -> None:
        with between_entries():
            act(point)

    failpoints.watch(stop_between_entries)


def _advance(assignment: Assignment) -> None:
    workflow = orders_workflow(
        assignment.workflow, assignment.folder, assignment.keyed_url, with_bank=assignment.with_bank
    )
    run = WorkflowRun(workflow, assignment.url, lease_seconds=assignment.lease_seconds)
    opened = open_pass(run, assignment.batch, f"worker-{os.getpid()}-{time.time_ns()}")
    for step in STEPS:
        opened.carry_out(step)
    close_batch(opened, STEPS)


def _publish(assignment: Assignment) -> None:
    import dagster as dg

    from tests.outbox.receiver import SECRET

    os.environ["FAULTS_HOOK_SECRET"] = SECRET
    webhook = Webhook(
        url=assignment.publish_to, secret=dg.EnvVar("FAULTS_HOOK_SECRET"), hosts=["127.0.0.1"], timeout_seconds=5
    )
    publish_events(Publisher(webhook, assignment.url))
