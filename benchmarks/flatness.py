"""Does the rate hold as the tables grow? The same due requests with few and with many other rows around them."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.databases import Databases
from benchmarks.workflow import ROLE, rows, workflow
from ops.batch import WorkflowRun, open_pass
from ops.process_batch import STEPS
from resources.store.intake import submit_rows
from resources.store.principals import create_principal

FEW = 1_000
MANY = 100_000
"""Other requests: half are due in other batches, half have ended, and all have dead versions about."""

ROUNDS = 2
"""Turns of each: shared machines swing, so the two take turns, each on a database of its own."""

_OTHER_ROWS = Path(__file__).with_name("other_rows.sql")


def measure_flatness(server: Databases, requests: int, say: Callable[[str], None]) -> float:
    """The rate with many other rows as a share of the rate with few."""
    names = {FEW: "failsafe_bench_few", MANY: "failsafe_bench_many"}
    try:
        places = {others: _Place(server, name, others) for others, name in names.items()}
        seconds = dict.fromkeys(names, 0.0)
        for turn in range(ROUNDS):
            for others in (FEW, MANY) if turn % 2 == 0 else (MANY, FEW):
                took = places[others].advance(requests, turn)
                seconds[others] += took
                say(f"{requests / took:8,.0f}/s  {requests:,} requests among {others:,} others")
        return seconds[FEW] / seconds[MANY]
    finally:
        server.drop(*names.values())


class _Place:
    """A database with so many other rows."""

    def __init__(self, server: Databases, name: str, others: int) -> None:
        self._server = server
        self._workflow = workflow("flat")
        server.make_ours(name)
        self._url = server.url(name)
        self._token = create_principal(self._url, kind="service", name="bench", roles=[ROLE]).token
        with server.connect(name) as connection:
            connection.execute("set search_path = failsafe")
            for statement in _OTHER_ROWS.read_text().split(";\n")[:-1]:
                connection.execute(statement.encode(), {"workflow": self._workflow.name, "others": others})

    def advance(self, requests: int, turn: int) -> float:
        """Seconds that one pass takes over so many newly submitted requests."""
        receipts = submit_rows(
            rows(requests, f"turn-{turn}"), workflow=self._workflow, principal=self._token, database_url=self._url
        ).receipts
        self._server.settle()
        began = time.monotonic()
        batch = open_pass(WorkflowRun(self._workflow, self._url), receipts[0].batch_key, f"turn-{turn}")
        moved = [batch.carry_out(step) for step in STEPS]
        seconds = time.monotonic() - began
        assert sum(counts["completed"] for counts in moved) == requests, moved
        return seconds
