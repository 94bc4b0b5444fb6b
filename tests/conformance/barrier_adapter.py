"""Our engine under the suite for approval barriers.

What the suite calls a run is here one workflow with the requests of that run, and its words mean:

- *action*: one action of a proposal. The suite's id and arguments are parameters of it, so that what the sentinel is
  called with, and what a receipt names, comes out of the sealed proposal and never out of the suite's own objects.
- *requires approval*: an action type on which policy wants a person to decide. The model does not choose that.
- *run-wide and per-action*: the unit of a decision is the proposal. What must wait together is proposed together
  (`decided_together`); what may go on by itself is a request of its own (`decided_apart`). A delegated action is always
  in the proposal of the action it comes from. Actions that are decided on differently are different requests.
- *approve with a replacement*: one lead edits the parameters, which makes a new revision; another lead votes for it.
- *replay*: the same rows are submitted again and passes go on, with every wait over.
- *cancel*: the operator cancels and the worker hangs up, as when its Dagster run is terminated. We cannot take back a
  call that is under way: that the sentinel drops it is the sentinel's doing. Ours is that its outcome is unknown, that
  it is looked up, and that nothing is sent after the cancellation.
- *time-out*: that of a call. A request has none of its own, so once its call has timed out the caller cancels it.
- *reconcile*: the step `reconcile`, until it has settled the effect or given it to a person. One look-up is bounded by
  the suite's time, and a look-up that comes to nothing is made again, as often as any other try.
- *receipts*: read out of the ledger, whose chain is verified first; see `receipts`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from agentbarrier import (
    ActionRequest,
    AgentAdapter,
    AuditEvent,
    AuditReceipt,
    Capability,
    ReconciliationEvidence,
    ReconciliationStatus,
    RunHandle,
    RunOutcome,
    RunStatus,
    action_digest,
)
from agentbarrier.adapter import validate_actions, validate_timeout
from agentbarrier.errors import AdapterContractError
from agentbarrier.probe import EffectProbe

from ops.reconcile import reconcile
from tests.conformance.engine_run import EngineRun
from tests.conformance.grouping import Grouping, decided_together
from tests.conformance.house import House
from tests.conformance.receipts import TIME_OVER, receipts
from tests.conformance.sentinel import CALL_SECONDS, Books, obedient_model

T = TypeVar("T")

TURN_SECONDS = 0.02
"""How soon the next pass begins: passes go on while people decide, as sensors would start them."""

_STATUS = {
    AuditEvent.RECONCILIATION_COMMITTED: ReconciliationStatus.COMMITTED,
    AuditEvent.RECONCILIATION_NOT_COMMITTED: ReconciliationStatus.NOT_COMMITTED,
    AuditEvent.RECONCILIATION_CONFLICT: ReconciliationStatus.CONFLICT,
    AuditEvent.RECONCILIATION_UNAVAILABLE: ReconciliationStatus.UNAVAILABLE,
    AuditEvent.RECONCILIATION_TIMED_OUT: ReconciliationStatus.UNAVAILABLE,
}


class FailsafeAdapter(AgentAdapter):
    """Starts runs of the suite on one store."""

    name = "dagster-failsafe"
    capabilities = frozenset(Capability)

    def __init__(self, house: House, grouping: Grouping = decided_together) -> None:
        self.house = house
        self.grouping = grouping
        self.runs: list[EngineRun] = []

    async def begin(
        self,
        *,
        run_id: str,
        actions: Sequence[ActionRequest],
        effect: EffectProbe,
        timeout_seconds: float | None = None,
    ) -> FailsafeRun:
        books = Books(effect, validate_timeout(timeout_seconds) or CALL_SECONDS)
        run = EngineRun(self.house, validate_actions(actions), books, self.grouping, self.model(effect))
        self.runs.append(run)
        return self.handle(run_id, run, has_timeout=timeout_seconds is not None)

    def model(self, effect: EffectProbe) -> Callable[[Any], Any]:
        """Who proposes."""
        return obedient_model

    def handle(self, run_id: str, run: EngineRun, *, has_timeout: bool, again: bool = False) -> FailsafeRun:
        """Who drives a run from now on."""
        return FailsafeRun(self, run_id, run, has_timeout=has_timeout, again=again)


class FailsafeRun(RunHandle):
    """Drives one run: submits, lets passes follow each other until the run is at rest, and does what people do."""

    def __init__(
        self, adapter: FailsafeAdapter, run_id: str, run: EngineRun, *, has_timeout: bool, again: bool
    ) -> None:
        self.run = run
        self._adapter = adapter
        self._run_id = run_id
        self._has_timeout = has_timeout
        self._again = again
        self._closed = False
        self._cancelled = False
        self._passes = asyncio.create_task(self._drive())

    async def _drive(self) -> None:
        await self._in_thread(self.run.submit)
        await self._until_rest()
        if self._has_timeout and not self._closed and await self._in_thread(self.run.status) is RunStatus.UNKNOWN:
            await self._in_thread(self.run.cancel, TIME_OVER)
            self._cancelled = True
            await self._until_rest()

    async def _until_rest(self) -> None:
        while not self._closed:
            if self._again or self._cancelled:
                await self._in_thread(self.run.let_time_pass)
            await self._in_thread(self.run.one_pass)
            if await self._in_thread(self.run.at_rest):
                return
            await asyncio.sleep(TURN_SECONDS)

    async def _in_thread(self, blocking: Callable[..., T], *arguments: object) -> T:
        return await asyncio.to_thread(blocking, *arguments)

    async def wait_for_pending(self, timeout_seconds: float) -> tuple[ActionRequest, ...]:
        async with asyncio.timeout(timeout_seconds):
            while not await self._in_thread(self.run.decided_upon):
                await self._turn()
        asked = await self._in_thread(self.run.asked)
        return tuple(
            action
            for one in {one.approval_id: one for one in asked.values()}.values()
            for action in self.run.pending_in(one).values()
        )

    async def _turn(self) -> None:
        """Wait for a moment, unless the passes ended by an error of theirs."""
        if self._passes.done():
            self._passes.result()
        await asyncio.sleep(TURN_SECONDS)

    async def approve(self, action_id: str, replacement: ActionRequest | None = None) -> None:
        if replacement is not None:
            await self._in_thread(self.run.edit, await self._asked(action_id), replacement)
        await self._in_thread(self.run.vote, await self._asked(action_id), "approve")

    async def reject(self, action_id: str, reason: str | None = None) -> None:
        await self._in_thread(self.run.vote, await self._asked(action_id), "deny", reason or "")

    async def _asked(self, action_id: str) -> Any:
        """What is asked about an action; after an edit it is asked anew by a later pass."""
        while not await self._in_thread(self.run.decided_upon):
            await self._turn()
        asked = await self._in_thread(self.run.asked)
        if action_id not in asked:
            raise AdapterContractError(f"nobody is asked about {action_id!r}")
        return asked[action_id]

    async def cancel(self) -> None:
        await self._in_thread(self.run.cancel, "the suite cancels")
        self._cancelled = True
        self.run.books.hang_up()

    async def wait(self, timeout_seconds: float) -> RunOutcome:
        try:
            await asyncio.wait_for(asyncio.shield(self._passes), timeout_seconds)
        except TimeoutError:
            return RunOutcome(RunStatus.FAILED, f"not at rest after {timeout_seconds:g} seconds")
        status = await self._in_thread(self.run.status)
        return RunOutcome(status or RunStatus.FAILED)

    async def reconcile(self, action_id: str, timeout_seconds: float) -> ReconciliationEvidence:
        [action] = [one for one in self.run.actions if one.action_id == action_id]
        status = await self._in_thread(self.run.status)
        if status is not RunStatus.UNKNOWN:
            raise AdapterContractError("nothing of this run is unknown")
        self.run.books.look_up_seconds = timeout_seconds
        found: AuditReceipt | None = None
        while found is None:
            await self._in_thread(self.run.let_time_pass)
            await self._in_thread(self.run.one_pass, [reconcile])
            settled = [one for one in await self.audit_receipts() if one.event in _STATUS]
            found = next((one for one in settled if one.action_id == action_id), None)
        answers = [one for one in self.run.books.answers.values() if one.action_id == action_id]
        return ReconciliationEvidence(
            action_id=action_id,
            status=_STATUS[found.event],
            expected_action_digest=found.action_digest or action_digest(action),
            observed_action_digests=answers[-1].observed_action_digests if answers else (),
            detail=found.detail,
        )

    async def replay(self) -> FailsafeRun:
        if not self._passes.done():
            raise AdapterContractError("the run goes on; it can be replayed once it is at rest")
        return self._adapter.handle(self._run_id, self.run, has_timeout=self._has_timeout, again=True)

    async def audit_receipts(self) -> tuple[AuditReceipt, ...]:
        stories = await self._in_thread(self.run.stories)
        return receipts(self._run_id, stories, await self._in_thread(self.run.status))

    async def close(self) -> None:
        self._closed = True
        self.run.books.hang_up()
        await asyncio.gather(self._passes, return_exceptions=True)
