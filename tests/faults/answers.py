"""Providers that lose answers, fail after the effect, ask for patience, talk nonsense, or kill the worker in a call."""

from __future__ import annotations

from collections.abc import Iterator

from tests.faults.http_provider import serving_keyed
from tests.faults.oracle import Verdict
from tests.faults.plan import Fate, Planned, usual
from tests.faults.providers import CALL_FAULTS, DEADLY_FAULTS, LOOK_UP_FAULTS, STUCK
from tests.faults.schedules import Stage, ended
from tests.faults.world import World

_KINDS = ("pay.keyed", "pay.asked", "pay.blind", "stock.reserve", "stock.unreserve", "customer.tell")
_MIXED, _STUCK = "mixed", "stuck_undo"


def cases() -> Iterator[str]:
    """Each fault of a call, over HTTP and in the process, some at once, and an undo that is refused."""
    yield from (f"http_{fault}" for fault in CALL_FAULTS)
    yield from CALL_FAULTS
    yield from DEADLY_FAULTS
    yield from LOOK_UP_FAULTS
    yield _MIXED
    yield _STUCK


def play(stage: Stage) -> Verdict:
    """Break the providers down, run until they work again, and let the world recover."""
    if not stage.schedule.case.startswith("http_"):
        return _play(stage, stage.world(), stage.schedule.case)
    world = stage.world()
    with serving_keyed(world.ledger.file) as url:
        world.keyed_url = url
        world.workflow = world.define()
        return _play(stage, world, stage.schedule.case.removeprefix("http_"))


def _play(stage: Stage, world: World, fault: str) -> Verdict:
    rng = stage.rng
    world.submit(usual(world.name, rng))
    if fault == _STUCK:
        world.submit([Planned(f"{STUCK}-{world.name}", "keyed", Fate.UNDONE, ("reserve",))])
    for kind in _KINDS:
        if fault in (*CALL_FAULTS, *DEADLY_FAULTS):
            world.ledger.break_down(kind, fault, rng.choice((1, 2)) if fault not in DEADLY_FAULTS else 1)
        elif fault in LOOK_UP_FAULTS:
            world.ledger.break_down(kind, "lose_answer", 2)
            world.ledger.break_down(kind, fault, 2)
        elif fault == _MIXED:
            world.ledger.break_down(kind, rng.choice(CALL_FAULTS))
            world.ledger.break_down(kind, rng.choice((*CALL_FAULTS, *LOOK_UP_FAULTS)))
    kills = 0
    for _ in range(4):
        kills += ended(stage.worker(world))
        world.vote()
        world.let_time_pass()
    world.ledger.repair()
    return stage.finish(world, _ends, kills=kills)


def _ends(one: Planned) -> frozenset[str]:
    if one.order.startswith(STUCK):
        return frozenset({"compensation_failed"})
    return one.ends
