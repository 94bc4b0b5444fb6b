"""Publishers that are killed around every delivery: each event arrives, in its order, and a repeat can be told."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from resources.failpoints import Failpoint
from tests.faults.kills import PUBLISHING
from tests.faults.oracle import Verdict
from tests.faults.plan import usual
from tests.faults.schedules import Stage, UnexpectedEnd, ended
from tests.faults.world import World
from tests.outbox.receiver import receiving


def cases() -> Iterator[str]:
    """Every point that a publisher comes by."""
    yield from (point.value for point in PUBLISHING)


def play(stage: Stage) -> Verdict:
    """Kill a publisher at the point, then let another one go on, and compare what arrived with what was written."""
    world = stage.world()
    world.execute("delete from outbox")  # what earlier schedules left there is not this one's business
    world.submit(usual(world.name, stage.rng))
    world.recover()
    nth = stage.rng.choice((1, 2, 5)) if stage.schedule.case in _AT_EACH_EVENT else 1
    with receiving() as receiver:
        if not ended(stage.worker(world, f"{stage.schedule.case}:{nth}:kill", publish_to=receiver.url)):
            raise UnexpectedEnd(f"no publisher came by {stage.schedule.case}")
        world.execute("update outbox set claim_until = clock_timestamp() where claim_until is not null")
        ended(stage.worker(world, publish_to=receiver.url))
        verdict = stage.finish(world, kills=1)
        for line in _wrong(world, [delivery.event for delivery in receiver.deliveries]):
            verdict.left(line)
    return verdict


_AT_EACH_EVENT = (Failpoint.DELIVERING, Failpoint.DELIVERED)


def _wrong(world: World, delivered: list[Any]) -> Iterator[str]:
    arrived: dict[str, list[int]] = defaultdict(list)
    ids = set()
    for event in delivered:
        if event["id"] not in ids:
            ids.add(event["id"])
            arrived[event["subject"]].append(int(event["sequence"]))
    for row in world.named("written_events"):
        if row.published_at is None or str(row.id) not in ids:
            yield f"event {row.aggregate_seq} of {row.aggregateid} was not published"
    for aggregate, sequence in arrived.items():
        if sequence != sorted(sequence):
            yield f"the events of {aggregate} arrived in the order {sequence}"
