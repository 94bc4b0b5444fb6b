"""Snapshots of outside state: taken before anybody decides, compared before anything is carried out."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from functools import partial

from ops.batch import Batch
from ops.parallel import in_threads
from policies.effects import EffectState
from policies.sealing import SealedAction
from resources.adapters.base import Adapter, opened
from resources.adapters.outcome import Unread, snapshot
from resources.workflow import Workflow

NOT_BEGUN = (None, EffectState.INTENDED)
"""Where the state that an action rests on still matters: afterwards it is what the action made of it."""


def any_taken(workflow: Workflow) -> bool:
    """Whether any adapter of the workflow reads outside state."""
    return any(adapter.takes_snapshots() for adapter in workflow.actions.values())


def take_snapshots(
    batch: Batch, wanted: Sequence[tuple[uuid.UUID, SealedAction]], tick: Callable[[], None]
) -> Mapping[uuid.UUID, dict[str, str] | str]:
    """Each request's fingerprints by action id, without those of actions that rest on nothing; or why one is missing.

    Adapters are opened, asked by as many threads as their semantics allow, and closed, while this thread calls `tick`.
    """
    found: dict[uuid.UUID, dict[str, str] | str] = {request_id: {} for request_id, _ in wanted}
    by_type: dict[str, list[tuple[uuid.UUID, SealedAction]]] = defaultdict(list)
    for request_id, action in wanted:
        if batch.workflow.adapter_for(action.action_type.name).takes_snapshots():
            by_type[action.action_type.name].append((request_id, action))
    for action_type, asked in by_type.items():
        with closing(opened(batch.workflow.adapter_for(action_type))) as live:
            for (request_id, action), answer in in_threads(
                partial(_read, live), asked, live.semantics.concurrency, tick
            ):
                so_far = found[request_id]
                if isinstance(answer, Unread):
                    found[request_id] = f"the state that {action.action_id} rests on was not read: {answer.reason}"
                elif answer is not None and isinstance(so_far, dict):
                    so_far[action.action_id] = answer
    return found


def _read(live: Adapter, item: tuple[uuid.UUID, SealedAction]) -> str | Unread | None:
    return snapshot(live, item[1].action)


def changes(before: Mapping[str, str], now: Mapping[str, str], compared: Iterable[str]) -> str:
    """What is another state now than it was when it was decided on, for a person; empty where all is as it was."""
    return "; ".join(
        f"the state that {action_id} rests on changed: it was {before[action_id]!r}, now it is {now.get(action_id)!r}"
        for action_id in compared
        if action_id in before and now.get(action_id) != before[action_id]
    )
