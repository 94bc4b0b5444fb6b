"""Decisions that race with the effect they are about: a cancellation, and the end of an approval's time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress

from ops.assess import assess
from ops.extract import extract
from ops.request_approval import request_approval
from ops.validate import validate
from policies.errors import NotPossibleNow
from resources.failpoints import Failpoint
from resources.store.operator import Cancelled
from tests.faults.oracle import Verdict
from tests.faults.plan import Fate, Planned
from tests.faults.schedules import Stage, also, ended
from tests.faults.world import World

ORDERS = 8
_BEFORE_EFFECTS = (extract, validate, assess, request_approval)


def cases() -> Iterator[str]:
    """What races with execution."""
    yield from ("cancel", "expiry")


def play(stage: Stage) -> Verdict:
    """Start a worker, and somewhen while it works, decide otherwise."""
    rng, world = stage.rng, stage.world()
    fate = Fate.AUTO if stage.schedule.case == "cancel" else Fate.APPROVED
    world.submit(
        Planned(f"{world.name}-{number}", rng.choice(("keyed", "shared")), fate, ("reserve", "tell")[: number % 3])
        for number in range(ORDERS)
    )
    world.one_pass(_BEFORE_EFFECTS)
    world.vote()
    worker = stage.worker(world, f"{Failpoint.CLAIMED}:1:stop", chunk=3)
    worker.stopped()
    worker.go_on()
    if fate is Fate.APPROVED:
        world.change("approvals_end_soon", seconds=rng.choice((0.02, 0.05, 0.1, 0.3)))
        ended(worker)
        return stage.finish(world, also("expired"))
    answers = _cancel(stage, world)
    ended(worker)
    return stage.finish(world, lambda one: _AFTER[answers.get(one.order)])


_AFTER: dict[Cancelled | None, frozenset[str]] = {
    None: frozenset({"completed"}),  # it was said to be too late
    Cancelled.CANCELLED: frozenset({"cancelled"}),
    Cancelled.COMPENSATING: frozenset({"compensated"}),
    Cancelled.UNCERTAIN: frozenset({"completed", "cancelled", "compensated"}),  # whatever was under way decides
}
"""How an order ends, by the answer to its cancellation: what an operator is told is so, and no provider fails here."""


def _cancel(stage: Stage, world: World) -> dict[str, Cancelled]:
    """Cancel every order, one after the other, while the worker carries them out; no answer: it was too late."""
    answers: dict[str, Cancelled] = {}
    for one in world.planned:
        time.sleep(stage.rng.uniform(0, 0.03))
        with suppress(NotPossibleNow):
            answers[one.order] = world.cancel(one.order)
    return answers
