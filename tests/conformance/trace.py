"""The ledger of one request as an agentack trace.

What agentack calls a session is a request, an action is one action of one revision of its proposal, an intent is what
the request wants, whichever action or revision gets there. And:

- what was *proposed* is read from the sealed proposal, what was *presented* from the review document, and what was
  *executed* from the proposal whose parameters the start of the effect named by their hash;
- one decision of ours is about all actions of a proposal, one of agentack's about one action: it is told once for each;
- of several votes the one that resolved it is the decision, and until then there is none;
- an edit, an expiry and a cancellation refuse what was asked, so they are told as denials;
- an action was executed when its effect was last started, since authority is counted then; it is told only where the
  effect was done. An effect that was refused, or given up, blocked its action;
- undoing is no action of the agent: it needs no approval and goes on after a cancellation, so it is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agentack import Action, Policy, TraceEvent, evaluate_events  # type: ignore[import-untyped]  # it ships no types
from agentack.parser import read_jsonl, write_jsonl  # type: ignore[import-untyped]

from tests.conformance.story import ActionOf, Story, Told

_DONE = ("effect.done", "effect.late")
_DECISIONS = {"released": "allow", "denied": "deny"}


def demanded(story: Story) -> Any:
    """The agentack policy that demands of a trace what the last assessment demanded of its request."""
    assessed = [event.payload["decision"] for event in story.events if event.type == "assessment.recorded"]
    return Policy(require_approval_for=("*",) if assessed[-1:] == ["review"] else ())


def trace_of(story: Story) -> list[Any]:
    """The trace of a request, in the order of its chain; without an end where the request has not ended."""
    return list(_Telling(story).events())


def judged(events: list[Any], folder: Path, policy: Any) -> Any:
    """What agentack reports of a trace that went through its file."""
    file = folder / "trace.jsonl"
    write_jsonl(file, events)
    return evaluate_events(read_jsonl(file), policy=policy)


@dataclass
class _Telling:
    story: Story
    open: dict[str, ActionOf] = field(default_factory=dict)
    """Actions that were neither executed nor blocked so far, by their ids in the trace."""
    asked: dict[str, str] = field(default_factory=dict)
    """The approval request under which each action was asked about last."""
    decided: set[str] = field(default_factory=set)
    """The approval requests that somebody decided, or that were refused otherwise."""

    def events(self) -> Iterator[Any]:
        done = {event.payload["key"] for event in self.story.events if event.type in _DONE}
        starts = {event.payload["key"]: event for event in self.story.events if event.type == "effect.started"}
        sent = [starts[key] for key in done if self.story.effects[key][0] == "forward"]
        for event in self.story.events:
            yield from self._told(event, executed=any(event is one for one in sent))
            if event.ends:
                yield from self._blocked(event, event.payload.get("reason") or event.type)
                yield self._event("session_end", event, reason=event.payload["state"])

    def _told(self, event: Told, *, executed: bool) -> Iterator[Any]:
        if executed:
            action = self.story.executed(event.payload["key"])
            self.open.pop(_name(action), None)
            yield self._about("action_executed", event, action, event.payload["approval"], action=_identity(action))
        elif event.type == "proposal.recorded" and event.payload["proposal"]:
            yield from self._proposed(event)
        elif event.type == "proposal.edited":
            yield from self._decided(event, event.payload["approval"], "deny")
            yield from self._blocked(event, "edited")
            yield from self._proposed(event)
        elif event.type.startswith("approval."):
            yield from self._asked(event)
        elif event.type in ("request.cancel_requested", "request.cancelled"):
            yield from self._stopped(event)

    def _asked(self, event: Told) -> Iterator[Any]:
        said = event.payload
        if event.type == "approval.requested":
            for action in self.story.shown[said["approval"]]:
                self.asked[_name(action)] = said["approval"]
                yield self._about("approval_requested", event, action, said["approval"], action=_identity(action))
        elif event.type == "approval.vote" and said["resolution"]:
            yield from self._decided(event, said["approval"], _DECISIONS[said["resolution"]])
        elif event.type == "approval.expired":
            yield from self._decided(event, said["approval"], "deny")

    def _stopped(self, event: Told) -> Iterator[Any]:
        for approval in set(self.asked.values()) - self.decided:
            yield from self._decided(event, approval, "deny")
        yield self._event("interrupt", event, reason=event.payload["reason"])

    def _proposed(self, event: Told) -> Iterator[Any]:
        for action in self.story.proposed[event.payload["proposal"]]:
            self.open[_name(action)] = action
            yield self._about("action_proposed", event, action, None, action=_identity(action))

    def _decided(self, event: Told, approval: str, decision: str) -> Iterator[Any]:
        self.decided.add(approval)
        until = {"expires_at": self.story.expires_at[approval]} if decision == "allow" else {}
        for action in self.story.shown[approval]:
            yield self._about("approval_decision", event, action, approval, decision=decision, **until)

    def _blocked(self, event: Told, reason: str) -> Iterator[Any]:
        for name, action in list(self.open.items()):
            del self.open[name]
            yield self._about("action_blocked", event, action, self.asked.get(name), reason=reason)

    def _about(self, kind: str, event: Told, about: ActionOf, approval: str | None, **more: object) -> Any:
        """An event about one action, under an approval request of ours where one was made."""
        return self._event(
            kind,
            event,
            action_id=_name(about),
            intent_id=self.story.operation_id,
            approval_id=f"{approval}/{about.action_id}" if approval else None,
            **more,
        )

    def _event(self, kind: str, event: Told, **more: object) -> Any:
        return TraceEvent(type=kind, timestamp=event.at, session_id=str(self.story.request_id), **more)


def _name(action: ActionOf) -> str:
    return f"{action.revision}/{action.action_id}"


def _identity(action: ActionOf) -> Any:
    tool, operation = action.type.split(".", 1)
    return Action(tool=tool, operation=operation, resource=action.target, parameters=action.parameters)
