"""Which actions of one run of the suite are proposed together, and so wait together for one decision."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from agentbarrier import ActionRequest

Grouping = Callable[[Sequence[ActionRequest]], list[list[ActionRequest]]]


def decided_together(actions: Sequence[ActionRequest]) -> list[list[ActionRequest]]:
    """Requests of a run-wide barrier: what nobody need decide on waits in the proposal of what somebody must.

    Raises:
        ValueError: an action that waits for nobody has several to wait for; a request has one proposal.
    """
    gated = [one for one in actions if one.requires_approval]
    if len(gated) <= 1:
        return [[*gated, *(one for one in actions if not one.requires_approval)]]
    if len(gated) < len(actions):
        raise ValueError("one proposal cannot wait for the decisions on several others")
    return [[one] for one in gated]


def decided_apart(actions: Sequence[ActionRequest]) -> list[list[ActionRequest]]:
    """Requests of a barrier for each action: only what was delegated goes with the action that it comes from."""
    parents = {one.action_id: one.parent_action_id for one in actions}
    groups: dict[str, list[ActionRequest]] = {}
    for one in actions:
        groups.setdefault(_origin(one.action_id, parents), []).append(one)
    return list(groups.values())


def _origin(action_id: str, parents: Mapping[str, str | None]) -> str:
    parent = parents[action_id]
    return action_id if parent is None else _origin(parent, parents)
