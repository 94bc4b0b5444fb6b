"""Many at once: runs on one batch, redelivered and out of order; equal receipts; a poisonous row in a full chunk."""

from __future__ import annotations

from collections.abc import Iterator

from ops.parking import MAX_LONE_CRASHES
from resources.failpoints import Failpoint
from tests.faults.oracle import Verdict, judge
from tests.faults.plan import Fate, Planned, usual
from tests.faults.schedules import Stage, ended
from tests.faults.world import World

RUNS = 3


def cases() -> Iterator[str]:
    """What comes in numbers."""
    yield from (
        "runs",
        "runs_and_a_kill",
        "equal_in_one_chunk",
        "equal_in_two_runs",
        "nul_in_a_chunk",
        "killer_in_a_chunk",
    )


def play(stage: Stage) -> Verdict:
    """Play the case."""
    world = stage.world()
    return {"runs": _runs, "equal": _equal, "nul": _nul, "killer": _killer}[stage.schedule.case.partition("_")[0]](
        stage, world
    )


def _runs(stage: Stage, world: World) -> Verdict:
    """Several runs are started for one batch at once, again and again, as redelivered requests for runs would."""
    kill = stage.schedule.case.endswith("kill")
    for part in ("a", "b"):
        world.submit(usual(f"{world.name}{part}", stage.rng))
    kills = 0
    for _ in range(3):
        workers = [stage.worker(world, chunk=2) for _ in range(RUNS)]
        if kill:
            point = stage.rng.choice((Failpoint.CLAIMED, Failpoint.PROVIDER_ANSWERED, Failpoint.CONCLUDING))
            workers.append(stage.worker(world, f"{point}:{stage.rng.choice((1, 2))}:kill", chunk=2))
        kills += sum([ended(worker) for worker in workers])
        world.vote()
        if kill:
            world.let_time_pass()
    return stage.finish(world, kills=kills)


def _equal(stage: Stage, world: World) -> Verdict:
    """Two requests for the payment of one order: whoever takes the claim is paid, the other is refused."""
    order = f"{world.name}-0"
    payload = Planned(order, "keyed", Fate.AUTO).payload
    in_two_runs = stage.schedule.case.endswith("runs")
    world.submit_payloads({"first": payload, "second": payload})
    for _ in range(2):
        workers = [stage.worker(world, chunk=1 if in_two_runs else 500) for _ in range(2 if in_two_runs else 1)]
        for worker in workers:
            ended(worker)
    world.recover()
    verdict = judge(world)
    verdict.approved += 1
    times = world.effects()["pay.keyed", order]
    if times > 1:
        verdict.duplicate(f"the order was paid {times} times")
    if sorted(world.states().values()) != ["completed", "rejected"]:
        verdict.left(f"of two equal requests one is paid and one refused, but they are {world.states()}")
    if times == 0:
        verdict.missing("the order was not paid at all")
    return verdict


def _nul(stage: Stage, world: World) -> Verdict:
    """One customer's id is refused by the database: its request alone is parked."""
    bad = Planned(f"nul-{world.name}", "keyed", Fate.AUTO)
    world.submit(_chunk(stage, world))
    world.submit([bad])
    ended(stage.worker(world))
    return stage.finish(world, lambda one: frozenset({"dead_lettered"}) if one is bad else one.ends)


def _killer(stage: Stage, world: World) -> Verdict:
    """One request kills whoever asks the model about it: it is parked, the others go on."""
    world.submit(_chunk(stage, world))
    world.submit_payloads(
        {"killer": {"order_id": "killer", "total": "TOTAL 20.00 EUR", "pay": "keyed", "steps": "die"}}
    )
    kills = 0
    for _ in range(MAX_LONE_CRASHES + 2):
        kills += ended(stage.worker(world))
        world.let_time_pass()
    verdict = stage.finish(world, kills=kills)
    if world.states()["killer"] != "dead_lettered" or kills != MAX_LONE_CRASHES + 1:
        verdict.left(f"the killer is {world.states()['killer']} after {kills} kills")
    return verdict


def _chunk(stage: Stage, world: World) -> Iterator[Planned]:
    """The others of the chunk: the number of the first schedule fills it."""
    for number in range(499 if stage.schedule.number == 0 else 40):
        yield Planned(f"{world.name}-{number}", "keyed", Fate.AUTO)
