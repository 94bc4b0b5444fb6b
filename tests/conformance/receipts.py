"""The suite's receipts, read out of the ledgers of the requests that make up one of its runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta

from agentbarrier import ActionRequest, AuditEvent, AuditReceipt, RunStatus, action_digest

from tests.conformance.sentinel import GatedWrite, as_suite_action
from tests.conformance.story import ActionOf, Story, Told

TIME_OVER = "its time is over"
"""Why a run that has a time-out is cancelled."""

_GATED = GatedWrite.action_type.name
_RESOLVED = {"released": AuditEvent.APPROVED, "denied": AuditEvent.REJECTED}
_SETTLED = {
    "effect.done": AuditEvent.RECONCILIATION_COMMITTED,
    "effect.intended": AuditEvent.RECONCILIATION_NOT_COMMITTED,
}
_ENDS = {
    RunStatus.COMPLETED: AuditEvent.RUN_COMPLETED,
    RunStatus.CANCELLED: AuditEvent.RUN_CANCELLED,
    RunStatus.TIMED_OUT: AuditEvent.RUN_TIMED_OUT,
    RunStatus.UNKNOWN: AuditEvent.RUN_UNKNOWN,
    RunStatus.FAILED: AuditEvent.RUN_FAILED,
}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_Fact = tuple[datetime, AuditEvent, ActionOf, str | None]


def receipts(run_id: str, stories: Sequence[Story], status: RunStatus | None) -> tuple[AuditReceipt, ...]:
    """The receipts of a run in the order in which it happened; `status`: how it ended, None: it has not.

    The ledger keeps one chain a request, so the order across requests is that of the database's clock. An effect of
    unknown outcome is what opens a reconciliation here; what closes it is the next thing the ledger says of its key, or
    of its request where the look-ups came to nothing and a person has to find out.
    """
    facts = sorted((fact for story in stories for fact in _facts(story)), key=lambda fact: fact[0])
    times = [event.at for story in stories for event in story.events]
    made = [_receipt(run_id, 1, min(times), AuditEvent.RUN_STARTED)]
    for at, event, action, detail in facts:
        meant = as_suite_action(action.parameters, gated=action.type == _GATED)
        made.append(_receipt(run_id, len(made) + 1, at, event, meant, detail))
    if status is not None:
        made.append(_receipt(run_id, len(made) + 1, max(times), _ENDS[status]))
    return tuple(made)


def time_was_over(stories: Iterable[Story]) -> bool:
    """Whether a request of the run was cancelled because of the run's time-out."""
    told = [event for story in stories for event in story.events if event.type.startswith("request.cancel")]
    return any(event.payload["reason"] == TIME_OVER for event in told)


def _facts(story: Story) -> Iterator[_Fact]:
    uncertain: dict[str, ActionOf] = {}
    for event in story.events:
        yield from _decisions(story, event)
        key = event.payload.get("key", "")
        if event.type == "effect.unknown":
            uncertain[key] = story.executed(key)
            yield event.at, AuditEvent.RECONCILIATION_STARTED, uncertain[key], event.payload["error"]
        elif event.type in _SETTLED and key in uncertain:
            yield event.at, _SETTLED[event.type], uncertain.pop(key), None
        elif event.type == "request.parked":
            why = event.payload["reason"]
            for action in uncertain.values():
                yield event.at, _gave_up(why), action, why


def _decisions(story: Story, event: Told) -> Iterator[_Fact]:
    if event.type == "approval.requested":
        kind: AuditEvent | None = AuditEvent.APPROVAL_REQUESTED
    elif event.type == "approval.vote":
        kind = _RESOLVED.get(event.payload["resolution"])
    else:
        return
    if kind is not None:
        for action in story.proposed[event.payload["proposal"]]:
            if action.type == _GATED:
                yield event.at, kind, action, event.payload.get("reason")


def _gave_up(why: str) -> AuditEvent:
    if "timed out" in why:
        return AuditEvent.RECONCILIATION_TIMED_OUT
    return AuditEvent.RECONCILIATION_CONFLICT if "conflict" in why else AuditEvent.RECONCILIATION_UNAVAILABLE


def _receipt(
    run_id: str,
    sequence: int,
    at: datetime,
    event: AuditEvent,
    action: ActionRequest | None = None,
    detail: str | None = None,
) -> AuditReceipt:
    return AuditReceipt(
        sequence=sequence,
        run_id=run_id,
        event=event,
        timestamp_ns=(at - _EPOCH) // timedelta(microseconds=1) * 1_000,
        action_id=action.action_id if action else None,
        action_digest=action_digest(action) if action else None,
        detail=detail,
    )
