"""`python -m benchmarks.resume`: how soon a vote is carried out by a real Dagster; the last line printed is JSON.

Seconds are from the vote's own time to the effect's, both by the database's clock: a decision waits for Dagster's
sensor, for the start of a process and for its run. Thirty votes come one after another, 1 to 6 s apart at random, on
two batches: each finds Dagster at another moment, and several share a run as they would on a busy day. Then six
batches get a vote each in the same moment. Then votes come at random again, and a knock tells Dagster of each.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import statistics
import sys
import time
import uuid
from collections.abc import Callable
from dataclasses import asdict, dataclass

from benchmarks.databases import NotDurable, databases
from benchmarks.resume_dagster import DagsterDidNotStart, dagster
from benchmarks.resume_definitions import WORKFLOWS
from benchmarks.resume_votes import TooSlow, Votes
from console.dagster_web import DagsterWeb
from console.knock import Knock

NAMES = tuple(workflow.name for workflow in WORKFLOWS)
GAP_SECONDS = (1.0, 6.0)

TARGETS = {
    "median_seconds": 15.0,
    "p95_seconds": 20.0,
    "six_batches_seconds": 25.0,
    "with_knock_median_seconds": 8.0,
}
"""Each is to be below."""


@dataclass(frozen=True, slots=True)
class Resumed:
    """What one go found. `runs`: how many carried the votes of the first part out."""

    median_seconds: float
    p95_seconds: float
    six_batches_seconds: float
    with_knock_median_seconds: float
    with_knock_p95_seconds: float
    votes: int
    runs: int
    with_knock_votes: int
    with_knock_runs: int


def main() -> int:
    """Measure, and say what was found."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.resume", description=__doc__)
    parser.add_argument("--votes", type=int, default=30, help="votes without a knock (default 30)")
    parser.add_argument("--knocks", type=int, default=20, help="votes with one (default 20)")
    parser.add_argument("--seed", type=int, default=1, help="another seed draws other gaps")
    parser.add_argument("--json", action="store_true", help="print the JSON line alone")
    arguments = parser.parse_args()
    if arguments.votes < 2 or arguments.knocks < 2:
        parser.error("two votes of each kind are the fewest that say anything")
    try:
        found = measure(arguments.votes, arguments.knocks, random.Random(arguments.seed))  # noqa: S311  # not a secret
    except (NotDurable, DagsterDidNotStart, TooSlow) as error:
        parser.exit(2, f"{error}\n")
    except KeyboardInterrupt:
        _say("interrupted; nothing is left running")
        return 130
    if not arguments.json:
        print(_table(found))
    print(json.dumps(asdict(found)))
    return 0


def measure(votes: int, knocks: int, chance: random.Random) -> Resumed:
    """All three parts, one after another, on databases and a Dagster of their own.

    Raises:
        NotDurable: the server's settings would flatter the figures.
        DagsterDidNotStart: naming its log.
        TooSlow: a vote was not carried out at all.
    """
    began = time.monotonic()

    def tell(line: str) -> None:
        _say(f"{time.monotonic() - began:6.1f} s  {line}")

    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    if load > cores / 2:
        tell(f"{load:.1f} processes share {cores} cores before it begins: expect longer times than on a quiet machine")
    with databases() as server, server.connect() as connection:
        connection.autocommit = True
        reviewer = Votes(server.url(), connection)
        reviewer.prepare(votes + knocks + 2)
        tell(f"{len(NAMES)} batches wait for votes; starting Dagster")
        with dagster("benchmarks.resume_definitions") as url:
            reviewer.carried_out([reviewer.cast(NAMES[0])])
            before = reviewer.runs()
            tell("Dagster carried a first vote out, which is not counted; now its votes come 1 to 6 s apart")
            plain = _one_by_one(reviewer, votes, chance, lambda _approval: None)
            between = reviewer.runs()
            tell(f"{votes} votes were carried out by {between - before} runs")
            together = reviewer.carried_out([reviewer.cast(name) for name in NAMES])
            last = max(done for _, done in together) - min(cast for cast, _ in together)
            knocking = reviewer.runs()
            tell(f"six batches voted on together: the last was done after {last:.1f} s; now with a knock")
            knocked = _one_by_one(reviewer, knocks, chance, Knock(server.url(), DagsterWeb(url)).released)
            after = reviewer.runs()
            tell(f"{knocks} votes with a knock were carried out by {after - knocking} runs")
    return Resumed(
        median_seconds=round(statistics.median(plain), 1),
        p95_seconds=round(p95(plain), 1),
        six_batches_seconds=round(last, 1),
        with_knock_median_seconds=round(statistics.median(knocked), 1),
        with_knock_p95_seconds=round(p95(knocked), 1),
        votes=votes,
        runs=between - before,
        with_knock_votes=knocks,
        with_knock_runs=after - knocking,
    )


def p95(seconds: list[float]) -> float:
    """The time that 95 in 100 do not exceed: one that was measured, not one in between."""
    return sorted(seconds)[math.ceil(0.95 * len(seconds)) - 1]


def _one_by_one(reviewer: Votes, count: int, chance: random.Random, told: Callable[[uuid.UUID], None]) -> list[float]:
    """Seconds from vote to effect of each of so many votes, on the first two batches."""
    approvals = []
    for _ in range(count):
        time.sleep(chance.uniform(*GAP_SECONDS))
        approvals.append(reviewer.cast(chance.choice(NAMES[:2])))
        told(approvals[-1])
    return [done - cast for cast, done in reviewer.carried_out(approvals)]


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _table(found: Resumed) -> str:
    lines = []
    for name, value in asdict(found).items():
        target = TARGETS.get(name)
        judged = "" if target is None else f"below {target:g}: {'met' if value < target else 'MISSED'}"
        lines.append(f"{name:28} {value:>8}  {judged}".rstrip())
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
