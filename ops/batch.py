"""What a step works on: one batch of one workflow, seen from one pass of one run."""

from __future__ import annotations

import random
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property

import sqlalchemy as sa

from ops.heap import settled_heap
from ops.sealed_memory import SealedMemory
from policies.errors import DefinitionError
from policies.policy import Policy
from policies.states import State
from resources.extractors.base import ExtractorTraits, traits
from resources.failpoints import Failpoint, reach
from resources.store import batches
from resources.store.catalogue import register_action_types, register_providers
from resources.store.claim import FIRST, Lease, claim
from resources.store.contention import again_when_contended
from resources.store.engine import Duty, engine_for, transaction
from resources.store.migrate import require_known_revision
from resources.store.stages import Page
from resources.workflow import Workflow

CHUNK = 1000
"""Requests handled by one claim, one bulk write and one commit: so many that round trips and commits cost little, so
few that a lease of 30 s is never at risk."""

LEASE_MARGIN = 1.0
"""Seconds by which a lease must outlast the slowest call of a provider."""

Counts = Counter[str]
"""How many requests a step moved, by what happened to them."""


RECORDS_UNAVAILABLE = "records_unavailable"
"""Counts requests that stay where they are, because a trusted service did not answer."""


def moved(counts: Counts) -> int:
    """How many requests moved; a run that moved none was idle, and the next one may wait longer."""
    return counts.total() - counts[RECORDS_UNAVAILABLE]


@dataclass(frozen=True, slots=True)
class WorkflowRun:
    """The job-level resource: which workflow this job advances, where its store is, how long a lease lasts."""

    workflow: Workflow
    database_url: str
    lease_seconds: float = 30.0
    backoff_seconds: float = 30.0
    """Longest wait before the second try; see `resources.run_settings`."""
    step_seconds: float = 300.0
    """Time budget of one step, so that none starves another; the sensors bring the rest back."""
    proposals: SealedMemory = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Refuses a lease too short for the slowest provider: nothing could ever be sent under it.

        Raises:
            DefinitionError: naming the action type and the lease it needs.
        """
        object.__setattr__(self, "proposals", SealedMemory(self.workflow.catalogue))
        for name, entry in self.workflow.catalogue.entries.items():
            least = entry.semantics.timeout.total_seconds() + LEASE_MARGIN
            if self.lease_seconds < least:
                raise DefinitionError(
                    f"a call for {name} may take {least - LEASE_MARGIN:g} s (semantics.timeout of {entry.adapter}),"
                    f" so a lease of {self.lease_seconds:g} s is too short;"
                    f" set FAILSAFE_LEASE_SECONDS to {least:g} or more"
                )


@dataclass
class Batch:
    """One pass over a batch. Steps read what is due from the store, decide with `policies`, and write."""

    run: WorkflowRun
    key: str
    run_id: str
    opened_at: datetime
    uniform: Callable[[], float] = random.random
    _step_ends: float = field(default=float("inf"), init=False)
    _next_beat: float = field(default=0.0, init=False)

    @property
    def workflow(self) -> Workflow:
        """The workflow's definition."""
        return self.run.workflow

    @property
    def lease_length(self) -> timedelta:
        """How long a claim lasts unless renewed."""
        return timedelta(seconds=self.run.lease_seconds)

    @cached_property
    def engine(self) -> sa.Engine:
        """The store, as the worker."""
        return engine_for(Duty.WORKER, self.run.database_url)

    @cached_property
    def policy(self) -> Policy:
        """The policy in force, read once for a pass."""
        return self.workflow.policy_in_force()

    @cached_property
    def extractor_traits(self) -> ExtractorTraits:
        """What the extractor says of itself."""
        return traits(self.workflow.extractor)

    @property
    def actor(self) -> str:
        """Who the ledger names for what a step did."""
        return f"run:{self.run_id}"

    def carry_out(self, step: Callable[[Batch], Counts]) -> Counts:
        """Run one step within its time budget and note what it moved."""
        self._step_ends = time.monotonic() + self.run.step_seconds
        with settled_heap():
            counts = again_when_contended(step)(self)  # it finds its own work in the store, so it may begin anew
        with transaction(self.engine) as connection:
            batches.beat(connection, self.run_id, moved(counts))
        return counts

    def time_left(self) -> bool:
        """Whether the step may take more work."""
        return time.monotonic() < self._step_ends

    def beat(self) -> None:
        """Show progress; called by the loop that makes it, so that a run that hangs is seen to."""
        if time.monotonic() >= self._next_beat:
            with transaction(self.engine) as connection:
                batches.beat(connection, self.run_id)
            self._next_beat = time.monotonic() + self.run.lease_seconds / 3

    def claimed(self, state: State, *, unknown: bool = False, restored: bool = False) -> Iterator[Lease]:
        """Lease what is due, chunk by chunk, each request once a pass; suspects of a crash come last and alone."""
        for suspect in (False, True):
            after = FIRST
            while self.time_left():
                lease = claim(
                    self.engine,
                    workflow=self.workflow.name,
                    batch=self.key,
                    state=state,
                    opened_at=self.opened_at,
                    after=after,
                    limit=CHUNK,
                    length=self.lease_length,
                    suspect=suspect,
                    unknown=unknown,
                    restored=restored,
                )
                if not lease.requests:
                    break
                after = lease.requests[-1].id
                yield lease
                self.beat()

    def page(self, after: uuid.UUID) -> Page:
        """The page of unleased work that comes after an id."""
        return Page(self.workflow.name, self.key, self.opened_at, after, CHUNK)

    def pages(self, handle: Callable[[uuid.UUID], uuid.UUID | None]) -> None:
        """Walk unleased work in id order: `handle` takes one page after an id and returns the last id, or None."""
        after: uuid.UUID | None = FIRST
        while after is not None and self.time_left():
            after = handle(after)
            self.beat()


def open_pass(run: WorkflowRun, key: str, run_id: str) -> Batch:
    """Open a new pass on a batch: everything due by the database's instant is advanced by it.

    Raises:
        SchemaMismatch: the store is at a revision that this code does not know.
    """
    return _batch(run, key, run_id, batches.open_batch)


def join_pass(run: WorkflowRun, key: str, run_id: str) -> Batch:
    """The pass this run has open; a run that begins at a later step (from failure, a step subset) opens it here.

    Raises:
        SchemaMismatch: the store is at a revision that this code does not know.
    """
    return _batch(run, key, run_id, batches.pass_instant)


def _batch(
    run: WorkflowRun, key: str, run_id: str, instant: Callable[[sa.Connection, str, str, str], datetime]
) -> Batch:
    with transaction(engine_for(Duty.WORKER, run.database_url)) as connection:
        require_known_revision(connection)
        workflow, windows = run.workflow, run.workflow.batches
        connection.execute(
            sa.text("select register_workflow(:name, :kind, :zone, :since)"),
            {"name": workflow.name, "kind": windows.kind, "zone": windows.zone, "since": windows.since},
        )
        register_providers(
            connection, {entry.adapter: entry.semantics for entry in workflow.catalogue.entries.values()}
        )
        register_action_types(
            connection,
            workflow.name,
            {name: entry.adapter for name, entry in workflow.catalogue.entries.items()},
        )
        batch = Batch(run, key, run_id, instant(connection, workflow.name, key, run_id))
        reach(Failpoint.OPENING)
    reach(Failpoint.OPENED)
    return batch
