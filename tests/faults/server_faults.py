"""The database server restarts, is killed, or ends single sessions, while workers work."""

from __future__ import annotations

import time
from collections.abc import Iterator

import sqlalchemy as sa

from resources.store.engine import close_engines
from tests.faults.oracle import Verdict
from tests.faults.plan import usual
from tests.faults.schedules import Stage, ended
from tests.faults.world import World

TERMINATIONS = 20
"""How often sessions are ended in one schedule."""


def cases() -> Iterator[str]:
    """What happens to the server."""
    yield from ("terminate", "restart", "crash")


def play(stage: Stage) -> Verdict:
    """Workers run while it happens; once it is over, they are started anew."""
    rng, world = stage.rng, stage.world()
    for part in ("a", "b"):
        world.submit(usual(f"{world.name}{part}", rng))
    for _ in range(3):
        workers = [stage.worker(world, chunk=2) for _ in range(2)]
        time.sleep(rng.uniform(0.05, 0.6))
        if stage.schedule.case == "terminate":
            for _ in range(TERMINATIONS // 3):
                _terminate(world)
                time.sleep(rng.uniform(0.005, 0.05))
            close_engines()  # those of this process went the same way
        elif stage.schedule.case == "restart":
            stage.server.restart()
        else:
            stage.server.crash()
        for worker in workers:
            ended(worker, may_lose_store=True)
        world.vote()
        world.let_time_pass()
    return stage.finish(world)


def _terminate(world: World) -> None:
    """End the sessions of all workers, those of the bank's adapter too."""
    with world.place.connect().connect() as connection:
        connection.execute(
            sa.text(
                "select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid()"
                " and (datname = current_database() and application_name = 'failsafe_worker' or datname = 'bank')"
            )
        )
