"""`python -m tests.faults`: break things for real and see that each effect happens once; the last line is JSON."""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from queue import SimpleQueue

from policies.errors import FailsafeError
from resources.failpoints import Failpoint
from tests.faults.families import FAMILIES, Amounts
from tests.faults.oracle import Verdict
from tests.faults.places import OwnServer, own_server
from tests.faults.schedules import Schedule, Stage, UnexpectedEnd
from tests.faults.world import Place

SIDE_BY_SIDE = 2
"""Schedules played at once: as many as a small machine has cores."""

FULL = Amounts(kills=50, others=8, servers=12)
QUICK = Amounts(kills=3, others=1, servers=2)


def main() -> int:
    """Play the schedules asked for, and say what they came to."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--schedules", type=int, help=f"schedules of each failpoint (default {FULL.kills})")
    parser.add_argument("--seed", type=int, help="draws the schedules (default: a new one)")
    parser.add_argument("--quick", action="store_true", help=f"every failpoint, but {QUICK.kills} schedules of each")
    parser.add_argument("--replay", metavar="SCHEDULE", help="play one schedule by its name")
    parser.add_argument("--family", choices=list(FAMILIES), help="play this family alone")
    arguments = parser.parse_args()
    amounts = QUICK if arguments.quick else FULL
    if arguments.schedules is not None:
        amounts = amounts.of_kills(arguments.schedules)
    if arguments.replay:
        schedules = [Schedule.named(arguments.replay)]
    else:
        seed = arguments.seed if arguments.seed is not None else random.SystemRandom().randrange(10**6)
        schedules = [one for one in _drawn(seed, amounts) if arguments.family in (None, one.family)]
        _say(f"seed {seed}: {len(schedules)} schedules")
    began = time.monotonic()
    with own_server() as server:
        tally = Tally(len(schedules))
        tally.play(server, schedules)
    line = tally.line(time.monotonic() - began)
    if not arguments.replay and not arguments.family:
        tally.require_every_point()
    for name, seen in tally.failures:
        print(f"FAILED {name}\n  " + "\n  ".join(seen) + f"\n  again: make faults ARGS='--replay {name}'")
    print(json.dumps(line))
    return 1 if tally.failures else 0


def _drawn(seed: int, amounts: Amounts) -> Iterator[Schedule]:
    for name, family in FAMILIES.items():
        for case in family.cases():
            for number in range(family.amount(amounts)):
                yield Schedule(seed, name, case, number)


class Tally:
    """What all schedules came to."""

    def __init__(self, schedules: int) -> None:
        self.total = Verdict()
        self.failures: list[tuple[str, list[str]]] = []
        self._schedules = schedules
        self._played = 0
        self._killed_at: Counter[str] = Counter()
        self._began = time.monotonic()

    def play(self, server: OwnServer, schedules: Sequence[Schedule]) -> None:
        """Play the schedules side by side; those that end the server for all, alone and last."""
        places: SimpleQueue[Place] = SimpleQueue()
        for place in server.places(SIDE_BY_SIDE):
            places.put(place)

        def one(schedule: Schedule) -> tuple[Schedule, Verdict]:
            place = places.get()
            try:
                return schedule, _played(Stage(place, server, schedule))
            finally:
                places.put(place)

        alone = [one for one in schedules if FAMILIES[one.family].alone]
        together = [one for one in schedules if not FAMILIES[one.family].alone]
        with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
            for schedule, verdict in pool.map(one, together):
                self._count(schedule, verdict)
        for schedule in alone:
            self._count(*one(schedule))

    def _count(self, schedule: Schedule, verdict: Verdict) -> None:
        self._played += 1
        self.total.add(verdict)
        if schedule.family in ("kills", "publishing") and verdict.kills:
            self._killed_at[schedule.case] += 1
        if not verdict.clean:
            self.failures.append((str(schedule), verdict.seen))
            _say(f"FAILED {schedule}: {verdict.seen[0]}")
        if self._played % 20 == 0 or self._played == self._schedules:
            seconds = time.monotonic() - self._began
            _say(f"{seconds:7.1f} s  {self._played} of {self._schedules} schedules, {self.total.kills} kills")

    def require_every_point(self) -> None:
        """A point at which nothing was killed proves nothing."""
        missed = [point.value for point in Failpoint if not self._killed_at[point]]
        if missed:
            self.failures.append(("coverage", [f"nothing was killed at {', '.join(missed)}"]))

    def line(self, seconds: float) -> dict[str, int | float]:
        """The figures, as they are printed last."""
        counts = {name: value for name, value in asdict(self.total).items() if isinstance(value, int)}
        first = {"failpoints": len(self._killed_at), "kills": counts.pop("kills"), "schedules": self._played}
        return {**first, **counts, "seconds": round(seconds, 1)}


def _played(stage: Stage) -> Verdict:
    try:
        return FAMILIES[stage.schedule.family].play(stage)
    except (UnexpectedEnd, TimeoutError, FailsafeError) as error:
        broken = Verdict()
        broken.left(f"{type(error).__name__}: {error}")
        return broken
    except Exception:  # noqa: BLE001  # the other schedules are played all the same
        broken = Verdict()
        broken.left(traceback.format_exc())
        return broken
    finally:
        stage.close()


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
