"""Snapshots of outside state: taken before anybody decides, compared before anything is carried out."""

from __future__ import annotations

import math
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing

from ops.batch import Batch
from ops.parallel import in_threads
from policies.effects import EffectState
from policies.sealing import SealedAction
from resources.adapters.base import opened
from resources.adapters.outcome import Unread, snapshot
from resources.workflow import Workflow

NOT_BEGUN = (None, EffectState.INTENDED)
"""Where the state that an action rests on still matters: afterwards it is what the action made of it."""


def any_taken(workflow: Workflow) -> bool:
    """Whether any adapter of the workflow reads outside state."""
    return any(adapter.takes_snapshots() for adapter in workflow.actions.values())


def take_snapshots(
    batch: Batch,
    wanted: Sequence[tuple[uuid.UUID, SealedAction]],
    tick: Callable[[], None],
    *,
    seconds: float = math.inf,
) -> Mapping[uuid.UUID, dict[str, str] | str]:
    """Each request's fingerprints by action id, without those of actions that rest on nothing; or why one is missing.

    Adapters are opened, asked by as many threads as their semantics allow, and closed, while this thread calls `tick`.
    After `seconds` no more is read, but always of one request at least: those that are left are missing in the answer.
    """
    began = time.monotonic()
    found: dict[uuid.UUID, dict[str, str] | str] = {request_id: {} for request_id, _ in wanted}
    asked = [one for one in wanted if batch.workflow.adapter_for(one[1].action_type.name).takes_snapshots()]
    left = Counter(request_id for request_id, _ in asked)
    with ExitStack() as stack:
        live = {
            name: stack.enter_context(closing(opened(batch.workflow.adapter_for(name))))
            for name in {action.action_type.name for _, action in asked}
        }
        concurrency = min((adapter.semantics.concurrency for adapter in live.values()), default=1)

        def read(item: tuple[uuid.UUID, SealedAction]) -> str | Unread | None:
            return snapshot(live[item[1].action_type.name], item[1].action)

        for (request_id, action), answer in in_threads(read, asked, concurrency, tick):
            so_far = found[request_id]
            if isinstance(answer, Unread):
                found[request_id] = f"the state that {action.action_id} rests on was not read: {answer.reason}"
            elif answer is not None and isinstance(so_far, dict):
                so_far[action.action_id] = answer
            left[request_id] -= 1
            if left[request_id] == 0 and time.monotonic() - began > seconds:
                break
    return {request_id: seen for request_id, seen in found.items() if left[request_id] == 0}


def changes(before: Mapping[str, str], now: Mapping[str, str], compared: Iterable[str]) -> str:
    """What is another state now than it was when it was decided on, for a person; empty where all is as it was."""
    return "; ".join(
        f"the state that {action_id} rests on changed: it was {before[action_id]!r}, now it is {now.get(action_id)!r}"
        for action_id in compared
        if action_id in before and now.get(action_id) != before[action_id]
    )
