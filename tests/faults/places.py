"""A PostgreSQL of the harness's own, and places on it where schedules run side by side."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import sqlalchemy as sa

from resources import embedded_home
from resources.adapters.base import opened
from resources.embedded_postgres import EmbeddedPostgres
from resources.store.engine import Duty, close_engines
from resources.store.migrate import upgrade
from tests.faults.providers import BANK_TABLES, BANK_URL, bank
from tests.faults.world import Place

HOME = Path(__file__).resolve().parent.parent.parent / ".failsafe" / "faults"


@dataclass(frozen=True)
class OwnServer:
    """An embedded server that may be killed."""

    embedded: EmbeddedPostgres

    def restart(self) -> None:
        """Restart it at once, ending every session, as an administrator would."""
        self.embedded.stop()
        self.embedded.start()
        close_engines()  # this process is no worker: what it had open is gone

    def crash(self) -> None:
        """Kill the postmaster, and wait until the server has recovered."""
        pid = int((embedded_home.of(self.embedded.folder) / "data" / "postmaster.pid").read_text().split()[0])
        os.kill(pid, signal.SIGKILL)
        self.embedded.start()
        close_engines()

    def places(self, number: int) -> list[Place]:
        """So many places, each with databases and a folder of its own."""
        url = self.embedded.url()
        _execute(url, "create database template_of_faults")
        upgrade(self.embedded.url(database="template_of_faults"))
        _execute(url, "create database bank")
        bank_url = make_bank(self.embedded.url(database="bank"), os.environ.__setitem__)
        found = []
        for index in range(number):
            _execute(url, f"create database faults_{index} template template_of_faults")
            folder = HOME / f"place-{index}"
            found.append(Place(self.embedded.url(database=f"faults_{index}"), bank_url, folder))
        return found


@contextmanager
def own_server() -> Iterator[OwnServer]:
    """A new server, gone with everything in it when the block ends."""
    for duty in Duty:  # the databases here are new: nobody has logins of their own to them
        os.environ.pop(f"FAILSAFE_{duty.name}_URL", None)
    embedded = EmbeddedPostgres(HOME / "postgres")
    embedded.remove()
    shutil.rmtree(HOME, ignore_errors=True)
    HOME.mkdir(parents=True)
    embedded.start()
    try:
        # What is written is safe from every death of a process; that of the machine is not what is tested here.
        _execute(embedded.url(), "alter system set fsync = off")
        _execute(embedded.url(), "alter system set max_connections = 200")
        embedded.stop()
        embedded.start()
        yield OwnServer(embedded)
    finally:
        close_engines()
        embedded.remove()
        shutil.rmtree(HOME, ignore_errors=True)


def _execute(url: str, statements: str) -> None:
    engine = sa.create_engine(url, poolclass=sa.NullPool, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        for statement in statements.split(";"):
            connection.execute(sa.text(statement))


def make_bank(url: str, set_variable: Callable[[str, str], object]) -> str:
    """Make a database the bank's, tell its address to this process, and return it."""
    _execute(url, BANK_TABLES)
    set_variable(BANK_URL, url)
    live = opened(bank())
    live.create_key_table()
    live.close()
    return url
