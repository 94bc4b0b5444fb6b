"""Tills that call the test back at the moments that matter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

from policies.actions import Action
from policies.outcomes import Done, Refused
from resources.workflow import Workflow
from tests.ops import toy

Moment = Literal["before", "after", "look_up"]
"""`before` the till does anything, `after` it did and before it answers, and when it is asked for a key."""

MOMENTS: tuple[Moment, ...] = ("before", "after", "look_up")

Hook = Callable[[str], object]
"""Called with the idempotency key; what it raises, the adapter raises."""

_hooks: dict[tuple[str, Moment], Hook] = {}


class HookedTill(toy.Till):
    """A till with hooks. An opened adapter is a copy, so hooks are kept beside it, by its file."""

    def execute(self, action: Action, key: str) -> Done | Refused:
        _call(self.file, "before", key)
        answer = super().execute(action, key)
        _call(self.file, "after", key)
        return answer

    def look_up(self, key: str) -> Done | None:
        _call(self.file, "look_up", key)
        return super().look_up(key)


def handled_by(workflow: Workflow, till: toy.Till) -> Workflow:
    """The workflow with this till for every action."""
    return replace(workflow, actions=dict.fromkeys(workflow.actions, till))


def hook(till: HookedTill, moment: Moment, action: Hook | None) -> None:
    """Call `action` at this moment from now on; None: no longer."""
    if action is None:
        _hooks.pop((till.file, moment), None)
    else:
        _hooks[till.file, moment] = action


def _call(file: str, moment: Moment, key: str) -> None:
    action = _hooks.get((file, moment))
    if action is not None:
        action(key)
