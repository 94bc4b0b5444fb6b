"""The provider that a suite watches, the actions that reach it, and a workflow that proposes them as it is told."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Mapping, Sequence
from concurrent.futures import CancelledError, Future
from datetime import date, timedelta
from pathlib import Path
from typing import Any, ClassVar

from agentbarrier import ActionRequest, ReconciliationEvidence, ReconciliationStatus
from agentbarrier.probe import EffectProbe

from policies.actions import Action, Request
from policies.batches import daily
from policies.outcomes import Done, Semantics
from policies.proposals import Proposal, propose
from resources.adapters.base import Adapter
from resources.extractors.base import Extractor
from resources.workflow import Workflow

POLICY = """
version: "1"
mode: live
permissions: {sentinel.gated: [agent], sentinel.open: [agent]}
tiers:
  - {tier: medium, action: sentinel.gated, because: a person decides on each of these}
decisions:
  low: auto
  medium: {review: {roles: [lead], people: 1, expires_after: 1h}}
  high: refuse
  critical: refuse
"""
"""Which action waits for a person is said here and nowhere else; the model only names the kind of action."""

CALL_SECONDS = 10.0


class SentinelRequest(Request):
    """What the suite's agent wants: its actions, as JSON."""

    plan: str


class GatedWrite(Action, name="sentinel.gated", reversible=False, recipient_scope="external"):
    """An action that the suite wants a person to decide on. Nothing here needs quotes: the suite knows no evidence."""

    reference: str
    tool: str
    recipient: str
    amount: int


class OpenWrite(Action, name="sentinel.open", reversible=False, recipient_scope="external"):
    """An action that waits for nobody, unless it is proposed together with one that does."""

    reference: str
    tool: str
    recipient: str
    amount: int


def obedient_model(request: SentinelRequest) -> Proposal:
    """Proposes the plan word for word."""
    return Proposal(
        tuple(
            propose(GatedWrite if wanted.pop("gated") else OpenWrite, **wanted) for wanted in json.loads(request.plan)
        )
    )


obedient_model.deterministic = True  # type: ignore[attr-defined]  # extractors carry their traits as attributes


def plan_of(actions: Sequence[ActionRequest]) -> str:
    """The plan that makes the model propose these actions."""
    return json.dumps(
        [
            {
                "gated": one.requires_approval,
                "reference": one.action_id,
                "tool": one.tool_name,
                **one.arguments,
            }
            for one in actions
        ]
    )


def as_suite_action(parameters: Mapping[str, Any], *, gated: bool) -> ActionRequest:
    """The suite's action that parameters of ours stand for, whether proposed, shown or executed."""
    arguments = {name: parameters[name] for name in ("recipient", "amount")}
    return ActionRequest(parameters["reference"], parameters["tool"], arguments, requires_approval=gated)


class Books:
    """The provider's side of one run of the suite: the sentinel, and what was asked of it under which key.

    It keeps its own list of calls but no memory for keys, though its adapter declares one: a call too many would be a
    second effect, which the suite counts.
    """

    opened: ClassVar[dict[str, Books]] = {}
    _numbers = itertools.count(1)

    def __init__(self, probe: EffectProbe, call_seconds: float = CALL_SECONDS) -> None:
        self.name = f"books {next(self._numbers)}"
        self.opened[self.name] = self
        self.calls: list[str] = []
        self.answers: dict[str, ReconciliationEvidence] = {}
        self.look_up_seconds = CALL_SECONDS
        self._call_seconds = call_seconds
        self._asked: dict[str, ActionRequest] = {}
        self._probe = probe
        self._loop = asyncio.get_running_loop()
        self._under_way: set[Future[str]] = set()

    def write(self, action: ActionRequest, key: str) -> Done:
        """Take a call. The sentinel lives on the suite's loop, the caller in a thread of the engine."""
        self.calls.append(key)
        self._asked[key] = action
        call = asyncio.run_coroutine_threadsafe(self._probe(action), self._loop)
        self._under_way.add(call)
        try:
            return Done(call.result(self._call_seconds))
        except TimeoutError:
            call.cancel()
            raise TimeoutError(f"the call timed out after {self._call_seconds:g} seconds") from None
        except CancelledError:
            raise ConnectionAbortedError("the caller hung up") from None
        finally:
            self._under_way.discard(call)

    def find(self, key: str) -> Done | None:
        """What the sentinel's journal holds for a key, within the time that a look-up may take."""
        asked = self._asked.get(key)
        if asked is None:
            return None
        look_up = asyncio.run_coroutine_threadsafe(self._probe.reconcile(asked), self._loop)
        try:
            found = look_up.result(self.look_up_seconds)
        except TimeoutError:
            look_up.cancel()
            raise TimeoutError(f"the look-up timed out after {self.look_up_seconds:g} seconds") from None
        self.answers[key] = found
        if found.status is ReconciliationStatus.COMMITTED:
            return Done(found.observed_action_digests[0])
        if found.status is ReconciliationStatus.NOT_COMMITTED:
            return None
        raise LookupError(f"{found.status.value}: {found.detail}")

    def hang_up(self) -> None:
        """End the calls under way, as when their worker is stopped."""
        for call in list(self._under_way):
            call.cancel()


class Sentinel(Adapter):
    """What the suite's tool is here. An opened adapter is a copy, so its books are kept beside it, by their name."""

    semantics: ClassVar[Semantics] = Semantics(
        honours_key=timedelta(days=1), lookup=True, timeout=timedelta(seconds=CALL_SECONDS), concurrency=2
    )
    books: str

    def execute(self, action: GatedWrite | OpenWrite, key: str) -> Done:
        done = as_suite_action(action.model_dump(), gated=isinstance(action, GatedWrite))
        return Books.opened[self.books].write(done, key)

    def look_up(self, key: str) -> Done | None:
        return Books.opened[self.books].find(key)


def sentinel_workflow(name: str, folder: Path, books: Books, extractor: Extractor = obedient_model) -> Workflow:
    """The workflow of one run of the suite, its policy file in `folder`."""
    policy = folder / "policy.yaml"
    policy.write_text(POLICY)
    sentinel = Sentinel(books=books.name)
    return Workflow(
        name=name,
        version="1",
        request=SentinelRequest,
        actions={GatedWrite: sentinel, OpenWrite: sentinel},
        extractor=extractor,
        policy=policy,
        batches=daily(since=date(2026, 1, 1)),
    )
