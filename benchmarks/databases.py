"""Where it is measured: two databases of its own on one server, ours and Dagster's, as durable as by default."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from sqlalchemy import URL, make_url

from benchmarks.workflow import PROVIDER_TABLE, PROVIDER_VARIABLE
from resources.embedded_postgres import EmbeddedPostgres
from resources.store.engine import Duty, close_engines
from resources.store.migrate import upgrade

HOME = Path(".failsafe") / "bench"
"""Of the embedded server, and of Dagster."""

OURS = "failsafe_bench"
DAGSTERS = "failsafe_bench_dagster"


class NotDurable(Exception):
    """The server may lose a commit that it has confirmed, so its speed says nothing."""


@dataclass(frozen=True)
class Databases:
    """The server's databases. `admin` is a connection to none of them, so that looking costs them no commits."""

    server: URL
    admin: psycopg.Connection[Any]

    def url(self, database: str = OURS, driver: str = "psycopg") -> str:
        """The SQLAlchemy URL of a database."""
        named = self.server.set(database=database, drivername=f"postgresql+{driver}")
        return named.render_as_string(hide_password=False)

    def connect(self, database: str = OURS) -> psycopg.Connection[Any]:
        """A connection as the server's own user."""
        return psycopg.connect(_address(self.server, database))

    def make_anew(self, database: str) -> None:
        """Make a database, replacing what an earlier go left."""
        self.admin.execute(f"drop database if exists {database} with (force)")
        self.admin.execute(f"create database {database}")

    def make_ours(self, database: str = OURS) -> None:
        """Make a database with our schema and the provider's tables."""
        self.make_anew(database)
        upgrade(self.url(database))
        with self.connect(database) as connection:
            connection.execute(PROVIDER_TABLE)

    def drop(self, *databases: str) -> None:
        """Drop databases that are done with."""
        close_engines()
        for database in databases:
            self.admin.execute(f"drop database if exists {database} with (force)")

    def settle(self) -> None:
        """Write out what is dirty, so that the next measurement does not pay for the last one."""
        self.admin.execute("checkpoint")

    def wal_bytes(self) -> int:
        """Bytes of write-ahead log that the server has written so far."""
        return int(self._scalar("select pg_current_wal_insert_lsn() - '0/0'::pg_lsn"))

    def commits(self, database: str = OURS) -> int:
        """Transactions committed in a database so far, those of ended sessions."""
        return int(self._scalar("select xact_commit from pg_stat_database where datname = %s", database))

    def version(self) -> str:
        """The server's version."""
        return str(self._scalar("show server_version"))

    def require_durability(self) -> None:
        """Check the defaults on which every figure rests.

        Raises:
            NotDurable: naming the setting.
        """
        for setting in ("fsync", "synchronous_commit", "full_page_writes"):
            value = self._scalar(f"show {setting}")
            if value != "on":
                raise NotDurable(
                    f"{setting} is {value} on this server; measure with {setting}=on, PostgreSQL's default"
                )

    def _scalar(self, statement: str, *values: str) -> Any:
        row = self.admin.execute(statement, values).fetchone()
        assert row is not None
        return row[0]


@contextmanager
def databases() -> Iterator[Databases]:
    """Our and Dagster's database, new, on FAILSAFE_DATABASE_URL's server or an embedded one; gone afterwards."""
    server = None
    given = os.environ.get("FAILSAFE_DATABASE_URL")
    if not given:
        server = EmbeddedPostgres(HOME / "postgres")
        server.start()
        given = server.url()
    for duty in Duty:  # the databases here are new: nobody has logins of their own to them
        os.environ.pop(f"FAILSAFE_{duty.name}_URL", None)
    try:
        with psycopg.connect(_address(make_url(given), "postgres"), autocommit=True) as admin:
            found = Databases(make_url(given), admin)
            found.require_durability()
            found.make_ours()
            found.make_anew(DAGSTERS)
            os.environ["FAILSAFE_DATABASE_URL"] = found.url()
            os.environ["DAGSTER_PG_URL"] = found.url(DAGSTERS, "psycopg2")
            os.environ[PROVIDER_VARIABLE] = _address(found.server, OURS)
            try:
                yield found
            finally:
                found.drop(OURS, DAGSTERS)
    finally:
        if server is not None:
            server.stop()


def _address(server: URL, database: str) -> str:
    return server.set(drivername="postgresql", database=database).render_as_string(hide_password=False)
