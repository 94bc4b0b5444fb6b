"""Named points of the code at which a test may end, stop or delay the process. Nothing happens at any unless armed.

`FAILSAFE_FAILPOINT="name:nth:action"` arms one for a process: at the `nth` time it comes by, it kills itself (`kill`,
as a machine's failure would), stops until it is continued (`stop`), raises (`raise`) or goes to sleep (`sleep`).
"""

from __future__ import annotations

import itertools
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

SLEEP_SECONDS = 3.0


class Failpoint(StrEnum):
    """Where a process may end: before a transaction commits, after it has, and around each call to the outside."""

    OPENING = "opening"  # a pass, before the commit
    OPENED = "opened"
    SWEEPING = "sweeping"  # a page of expired leases is taken back, before the commit
    SWEPT = "swept"
    EXPIRING = "expiring"  # a page of approvals expires, before the commit
    EXPIRED = "expired"
    CLAIMING = "claiming"  # a lease is written, before the commit
    CLAIMED = "claimed"
    ASKING_MODEL = "asking_model"
    MODEL_ANSWERED = "model_answered"
    RECORDING_PROPOSALS = "recording_proposals"
    PROPOSALS_RECORDED = "proposals_recorded"
    RECORDING_FINDINGS = "recording_findings"
    FINDINGS_RECORDED = "findings_recorded"
    RECORDING_ASSESSMENTS = "recording_assessments"
    ASSESSMENTS_RECORDED = "assessments_recorded"
    RECORDING_APPROVAL_REQUESTS = "recording_approval_requests"
    APPROVAL_REQUESTS_RECORDED = "approval_requests_recorded"
    RECORDING_RECHECK = "recording_recheck"
    RECHECK_RECORDED = "recheck_recorded"
    STARTING_EFFECTS = "starting_effects"
    EFFECTS_STARTED = "effects_started"
    CALLING_PROVIDER = "calling_provider"
    PROVIDER_ANSWERED = "provider_answered"
    RECORDING_OUTCOMES = "recording_outcomes"  # the outcomes are written, what follows from them is not
    CONCLUDING = "concluding"  # that too, before the commit
    OUTCOMES_RECORDED = "outcomes_recorded"
    RELEASING = "releasing"  # the lease is given back, before the commit
    RELEASED = "released"
    STARTING_UNDO = "starting_undo"
    UNDO_STARTED = "undo_started"
    CALLING_UNDO = "calling_undo"
    UNDO_ANSWERED = "undo_answered"
    RECORDING_UNDO = "recording_undo"
    UNDO_RECORDED = "undo_recorded"
    LOOKING_UP = "looking_up"
    LOOKED_UP = "looked_up"
    RECORDING_LOOK_UPS = "recording_look_ups"
    LOOK_UPS_RECORDED = "look_ups_recorded"
    CLOSING = "closing"  # the run, before the commit
    CLOSED = "closed"
    EVENTS_CLAIMED = "events_claimed"
    DELIVERING = "delivering"
    DELIVERED = "delivered"
    MARKING = "marking"  # events as published, before the commit
    MARKED = "marked"


@dataclass(frozen=True, slots=True)
class SendingPoints:
    """The points on the way of one effect, which are others on the way back."""

    starting: Failpoint
    started: Failpoint
    calling: Failpoint
    answered: Failpoint
    recorded: Failpoint


FORWARD = SendingPoints(
    Failpoint.STARTING_EFFECTS,
    Failpoint.EFFECTS_STARTED,
    Failpoint.CALLING_PROVIDER,
    Failpoint.PROVIDER_ANSWERED,
    Failpoint.OUTCOMES_RECORDED,
)
BACKWARD = SendingPoints(
    Failpoint.STARTING_UNDO,
    Failpoint.UNDO_STARTED,
    Failpoint.CALLING_UNDO,
    Failpoint.UNDO_ANSWERED,
    Failpoint.UNDO_RECORDED,
)


class FailpointReached(BaseException):
    """What the action `raise` raises: no handler of errors may take it for one."""


Watcher = Callable[[Failpoint], None]

_watcher: Watcher | None = None


def reach(failpoint: Failpoint) -> None:
    """The process comes by this point."""
    if _watcher is not None:
        _watcher(failpoint)


def watch(watcher: Watcher | None) -> None:
    """Call `watcher` at every point from now on; None: nobody watches."""
    global _watcher  # noqa: PLW0603  # one process has one fate
    _watcher = watcher


def arm(order: str | None) -> None:
    """Arm one point by `name:nth:action`, or none.

    Raises:
        ValueError: as `watcher_for`.
    """
    watch(watcher_for(order) if order else None)


def watcher_for(order: str) -> Watcher:
    """What acts at one point as `name:nth:action` says.

    Raises:
        ValueError: there is no such point or action, or `nth` is no number from 1 on.
    """
    name, number, action = order.split(":")
    point, nth, act = Failpoint(name), int(number), _ACTIONS.get(action)
    if act is None or nth < 1:
        raise ValueError(f"FAILSAFE_FAILPOINT={order}: name:nth:action, nth from 1, action {', '.join(_ACTIONS)}")
    passes = itertools.count(1)  # one C call counts, so that threads cannot come by as the same number

    def watcher(reached: Failpoint) -> None:
        if reached is point and next(passes) == nth:
            act()

    return watcher


def _kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _stop() -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def _raise() -> None:
    raise FailpointReached


def _sleep() -> None:
    time.sleep(SLEEP_SECONDS)


_ACTIONS: dict[str, Callable[[], None]] = {"kill": _kill, "stop": _stop, "raise": _raise, "sleep": _sleep}

arm(os.environ.get("FAILSAFE_FAILPOINT"))
