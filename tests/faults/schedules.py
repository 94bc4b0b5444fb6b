"""What a schedule is: named by family, case and number, drawn from a seed, and so repeatable by its name alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from zlib import crc32

from tests.faults.oracle import Ends, Verdict, judge
from tests.faults.places import OwnServer
from tests.faults.plan import Planned
from tests.faults.worker import KILLED, NO_STORE, Assignment, Worker
from tests.faults.world import Place, World


@dataclass(frozen=True)
class Schedule:
    """One schedule. `case` says what happens (a failpoint, a fault), `number` which of many of its kind."""

    seed: int
    family: str
    case: str
    number: int

    def __str__(self) -> str:
        return f"{self.seed}:{self.family}:{self.case}:{self.number}"

    @classmethod
    def named(cls, name: str) -> Schedule:
        """The schedule of this name.

        Raises:
            ValueError: it is none.
        """
        seed, family, case, number = name.split(":")
        return cls(int(seed), family, case, int(number))


@dataclass
class Stage:
    """Where a schedule is played: its place, its dice, and the server under it."""

    place: Place
    server: OwnServer
    schedule: Schedule

    def __post_init__(self) -> None:
        self.rng = Random(str(self.schedule))
        self._worlds = 0
        self._workers: list[Worker] = []

    def world(self, *, lease_seconds: float = 30.0, with_bank: bool = True, keyed_url: str = "") -> World:
        """A new world; a schedule that has to begin again takes another one."""
        self._worlds += 1
        name = f"s{crc32(str(self.schedule).encode()):x}_{self._worlds}"
        return World(self.place, name, lease_seconds, with_bank, keyed_url)

    def worker(
        self,
        world: World,
        failpoint: str = "",
        *,
        chunk: int = 500,
        publish_to: str = "",
        url: str = "",
        bank_url: str = "",
    ) -> Worker:
        """A new worker process in a world."""
        worker = Worker(
            Assignment(
                url=url or world.place.url,
                bank_url=bank_url or world.place.bank_url,
                folder=world.folder,
                workflow=world.name,
                batch=world.batch,
                lease_seconds=world.lease_seconds,
                seed=f"{self.schedule} {self.rng.random()}",
                failpoint=failpoint,
                chunk=chunk,
                with_bank=world.with_bank,
                keyed_url=world.keyed_url,
                publish_to=publish_to,
            )
        )
        self._workers.append(worker)
        return worker

    def close(self) -> None:
        """End whatever a schedule that failed left running, or stopped."""
        for worker in self._workers:
            worker.kill()

    def finish(self, world: World, ends: Ends = lambda one: one.ends, *, kills: int = 0) -> Verdict:
        """Let the world recover, and judge it."""
        world.recover()
        return judge(world, ends, kills=kills)


Play = Callable[[Stage], Verdict]


class UnexpectedEnd(Exception):
    """A worker ended in a way that its schedule does not explain."""


def ended(worker: Worker, *, may_lose_store: bool = False) -> bool:
    """Wait for a worker's end; whether it was killed.

    Raises:
        UnexpectedEnd: it failed.
    """
    code = worker.end()
    if code in (0, KILLED) or (may_lose_store and code == NO_STORE):
        return code == KILLED
    raise UnexpectedEnd(f"a worker ended with exit code {code}")


def also(*states: str) -> Ends:
    """Where somebody intervened, an order may end in these states as well."""

    def ends(one: Planned) -> frozenset[str]:
        return one.ends | set(states)

    return ends
