"""Workers that stop for twice their lease, while others go on with their work, and then wake up as if nothing was."""

from __future__ import annotations

import time
from collections.abc import Iterator

from resources.failpoints import Failpoint
from tests.faults.oracle import Verdict
from tests.faults.plan import usual
from tests.faults.schedules import Stage, UnexpectedEnd, ended

LEASE_SECONDS = 2.0
"""Short, so that twice as long is bearable; the bank's calls may take longer, so it has no part in this."""

_MOMENTS = (
    Failpoint.CLAIMED,
    Failpoint.MODEL_ANSWERED,
    Failpoint.RECORDING_PROPOSALS,
    Failpoint.RECORDING_FINDINGS,
    Failpoint.RECORDING_ASSESSMENTS,
    Failpoint.RECHECK_RECORDED,
    Failpoint.STARTING_EFFECTS,
    Failpoint.EFFECTS_STARTED,
    Failpoint.CALLING_PROVIDER,
    Failpoint.PROVIDER_ANSWERED,
    Failpoint.RECORDING_OUTCOMES,
    Failpoint.RELEASING,
    Failpoint.CALLING_UNDO,
    Failpoint.UNDO_ANSWERED,
    Failpoint.LOOKING_UP,
    Failpoint.LOOKED_UP,
    Failpoint.RECORDING_LOOK_UPS,
)


def cases() -> Iterator[str]:
    """The points at which a worker stops."""
    yield from (point.value for point in _MOMENTS)


def play(stage: Stage) -> Verdict:
    """Stop a worker at the point; two others find its lease over; then let it go on."""
    world = stage.world(lease_seconds=LEASE_SECONDS, with_bank=False)
    world.submit(usual(world.name, stage.rng, pays=("keyed", "asked", "blind")))
    world.ledger.break_down("pay.keyed", "lose_answer")
    for _ in range(4):
        sleeper = stage.worker(world, f"{stage.schedule.case}:1:stop")
        if sleeper.stopped():
            break
        ended(sleeper)
        world.vote()
        world.let_time_pass()
        world.expire()
    else:
        raise UnexpectedEnd(f"no worker came by {stage.schedule.case}")
    # What holds a lock stops the others as well, until it goes on: so they are not waited for.
    first = stage.worker(world)
    time.sleep(2 * LEASE_SECONDS)
    second = stage.worker(world)
    time.sleep(1.0)
    sleeper.go_on()
    for worker in (sleeper, first, second):
        ended(worker, may_lose_store=True)
    # What was sent after all, when it was settled otherwise, is late and a case where the provider knows no keys.
    return stage.finish(world)
