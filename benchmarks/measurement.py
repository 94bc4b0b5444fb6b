"""Everything in one go: the job and its floor, without and with a provider, in turns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import psycopg

from benchmarks.dagster_run import RunCost, make_dagster_home, run_job
from benchmarks.databases import Databases
from benchmarks.flatness import measure_flatness
from benchmarks.floor import floor_tables, write_floor
from benchmarks.workflow import AMOUNT, ROLE, Pay, provider, rows, workflow
from policies.money import Money
from resources.adapters.base import opened
from resources.adapters.sql import SqlAdapter
from resources.store.intake import submit_rows
from resources.store.principals import create_principal

WARM_UP = 2_000
"""Requests of the floor written first: a new server makes its log files and fills its caches once."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What one go found; `README.md` says what each means."""

    requests: int
    per_second: float
    floor_per_second: float
    ratio: float
    with_provider_ratio: float
    run_overhead_seconds: float
    cpu_ms_per_request: float
    commits_per_request: float
    wal_kb_per_request: float
    dagster_wal_kb_per_run: float
    rss_mb: float
    events_per_run: int
    flatness: float


@dataclass(frozen=True, slots=True)
class _Pair:
    """The job between two halves of its floor, so that a drift of the machine meets both."""

    run: RunCost
    per_second: float
    floor_per_second: float
    commits: int
    wal_bytes: int
    batch: str

    @property
    def ratio(self) -> float:
        return self.per_second / self.floor_per_second


def measure(server: Databases, requests: int, say: Callable[[str], None]) -> Figures:
    """One go over every figure; `say` is told of each measurement once it is made."""
    make_dagster_home()
    bench = _Bench(server, requests, say)
    server.settle()
    wal = server.wal_bytes()
    idle = run_job("instant", _today())
    dagster_wal = server.wal_bytes() - wal
    say(f"{idle.wall:8.1f} s  a run that finds nothing to do")
    alone = bench.pair("instant", None)
    live = opened(provider())
    try:
        live.create_key_table()
        with_provider = bench.pair("provider", live)
    finally:
        live.close()
    flatness = measure_flatness(server, max(requests // 4, 1), say)
    return Figures(
        requests=requests,
        per_second=round(alone.per_second, 1),
        floor_per_second=round(alone.floor_per_second, 1),
        ratio=round(alone.ratio, 3),
        with_provider_ratio=round(with_provider.ratio, 3),
        run_overhead_seconds=round(alone.run.overhead, 2),
        cpu_ms_per_request=round((alone.run.cpu - idle.cpu) / requests * 1000, 3),
        commits_per_request=round(alone.commits / requests, 4),
        wal_kb_per_request=round((alone.wal_bytes - dagster_wal) / requests / 1024, 2),
        dagster_wal_kb_per_run=round(dagster_wal / 1024, 1),
        rss_mb=round(alone.run.rss_mb, 1),
        events_per_run=max(alone.run.events, idle.events),
        flatness=round(flatness, 3),
    )


class _Bench:
    """The measurements on our own database."""

    def __init__(self, server: Databases, requests: int, say: Callable[[str], None]) -> None:
        self._server = server
        self._requests = requests
        self._say = say
        self._token = create_principal(server.url(), kind="service", name="bench", roles=[ROLE]).token
        with server.connect() as connection, floor_tables(connection):
            write_floor(connection, min(WARM_UP, requests), batch=_today())

    def pair(self, name: str, adapter: SqlAdapter | None) -> _Pair:
        """Half of the floor, the job, the other half of the floor."""
        receipts = submit_rows(
            rows(self._requests), workflow=workflow(name), principal=self._token, database_url=self._server.url()
        ).receipts
        batch = receipts[0].batch_key
        seconds = self._floor(self._requests // 2, batch, adapter)
        self._server.settle()
        commits, wal = self._server.commits(), self._server.wal_bytes()
        run = run_job(name, batch)
        commits, wal = self._server.commits() - commits, self._server.wal_bytes() - wal
        rate = self._requests / run.in_ops
        self._say(f"{rate:8,.0f}/s  {self._requests:,} requests through Dagster, provider: {name}")
        self._require_all_completed(name)
        seconds += self._floor(self._requests - self._requests // 2, batch, adapter)
        return _Pair(run, rate, self._requests / seconds, commits, wal, batch)

    def _floor(self, requests: int, batch: str, adapter: SqlAdapter | None) -> float:
        def send(number: int, key: str) -> object:
            assert adapter is not None
            return adapter.execute(Pay(order=f"order-{number}", amount=Money.parse(AMOUNT)), key)

        self._server.settle()
        with self._server.connect() as connection, floor_tables(connection):
            seconds = write_floor(connection, requests, batch=batch, send=send if adapter else None)
        self._say(
            f"{requests / seconds:8,.0f}/s  the floor of {requests:,} requests{' and the provider' if adapter else ''}"
        )
        return seconds

    def _require_all_completed(self, name: str) -> None:
        """A rate of work that was not done would be no rate."""
        connection: psycopg.Connection[Any]
        with self._server.connect() as connection:
            found = connection.execute(
                "select count(*) from failsafe.requests where workflow = %s and state = 'completed'", [name]
            ).fetchone()
        assert found == (self._requests,), f"{found} of {self._requests} requests of {name} completed"


def _today() -> str:
    return datetime.now(UTC).date().isoformat()
