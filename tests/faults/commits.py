"""Commits whose acknowledgement is lost, and commits that never arrive: neither may be taken for the other."""

from __future__ import annotations

from collections.abc import Iterator

from tests.faults.oracle import Verdict
from tests.faults.plan import usual
from tests.faults.proxy import breaking_off
from tests.faults.schedules import Stage, ended

_MOST_COMMITS = 30
"""A worker's pass over these orders makes about as many."""


def cases() -> Iterator[str]:
    """What is lost on the way."""
    yield from ("acknowledgement", "commit", "answer_of_the_bank")


def play(stage: Stage) -> Verdict:
    """Run a worker whose connection breaks off at a commit; people decide; another one, and the world recovers."""
    rng, world = stage.rng, stage.world()
    world.submit(usual(world.name, rng))
    at_the_bank = stage.schedule.case == "answer_of_the_bank"
    for _ in range(3):
        # The bank's adapter commits with each statement, so that there the nth statement of all is meant.
        with breaking_off(
            world.place.bank_url if at_the_bank else world.place.url,
            rng.randint(1, _MOST_COMMITS),
            heard=stage.schedule.case != "commit",
            at_statements=at_the_bank,
        ) as (_, url):
            worker = stage.worker(world, bank_url=url) if at_the_bank else stage.worker(world, url=url)
            ended(worker, may_lose_store=True)
        world.vote()
        world.let_time_pass()
    return stage.finish(world)
