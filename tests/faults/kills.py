"""Workers that are killed at every failpoint, again and again, alone or beside others."""

from __future__ import annotations

from collections.abc import Iterator

from resources.failpoints import Failpoint
from tests.faults.oracle import Verdict
from tests.faults.plan import usual
from tests.faults.schedules import Stage, UnexpectedEnd, ended
from tests.faults.world import World

PUBLISHING = (
    Failpoint.EVENTS_CLAIMED,
    Failpoint.DELIVERING,
    Failpoint.DELIVERED,
    Failpoint.MARKING,
    Failpoint.MARKED,
)
"""Points that the publisher comes by; `publishing.py` plays them."""

_AFTER_A_CRASH = (Failpoint.SWEEPING, Failpoint.SWEPT)
_MOST_PHASES = 5


def cases() -> Iterator[str]:
    """Every point that a worker comes by."""
    yield from (point.value for point in Failpoint if point not in PUBLISHING)


def play(stage: Stage) -> Verdict:
    """Kill a worker at the point, mostly at the first to third time it comes by; sometimes another one after it."""
    point = Failpoint(stage.schedule.case)
    for nth, beside in ((stage.rng.choice((1, 1, 1, 2, 3)), stage.rng.random() < 0.2), (1, False)):
        world = stage.world()
        kills = _drive(stage, world, point, nth, beside=beside)
        if kills:
            return stage.finish(world, kills=kills)
    raise UnexpectedEnd(f"no worker came by {point}")


def _drive(stage: Stage, world: World, point: Failpoint, nth: int, *, beside: bool) -> int:
    """Run armed workers, others beside them or not, until one is killed; people decide in between.

    Returns how many were killed in all; none where the armed ones never came by.
    """
    rng = stage.rng
    world.submit(usual(world.name, rng))
    world.ledger.break_down("pay.keyed", rng.choice(("lose_answer", "fail_after")))
    world.ledger.break_down("pay.asked", "lose_answer", rng.choice((0, 1)))
    world.ledger.break_down("stock.unreserve", "lose_answer", rng.choice((0, 1)))
    kills = 0
    if point in _AFTER_A_CRASH:
        kills += ended(stage.worker(world, f"{rng.choice(_CERTAIN)}:1:kill"))
        world.let_time_pass()
    for _ in range(_MOST_PHASES):
        others = [stage.worker(world, chunk=3)] if beside else []
        killed = ended(stage.worker(world, f"{point}:{nth}:kill", chunk=rng.choice((500, 4))))
        for other in others:
            ended(other)
        if killed:
            kills += 1
            break
        if not world.open():
            return 0
        world.vote()
        world.let_time_pass()
        world.expire()
    else:
        return 0
    if rng.random() < 0.3:
        world.let_time_pass()
        kills += ended(stage.worker(world, f"{rng.choice(_ON_THE_WAY)}:{rng.choice((1, 2))}:kill"))
    return kills


_CERTAIN = (
    Failpoint.CLAIMED,
    Failpoint.RECORDING_PROPOSALS,
    Failpoint.EFFECTS_STARTED,
    Failpoint.CALLING_PROVIDER,
    Failpoint.PROVIDER_ANSWERED,
    Failpoint.RECORDING_OUTCOMES,
)
"""Points that a first worker surely comes by, with a lease."""

_ON_THE_WAY = (*_CERTAIN, Failpoint.LOOKED_UP, Failpoint.CALLING_UNDO)
