"""The providers' own books, in a SQLite file: one row a business effect and no unique key, so a duplicate shows."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

_TABLES = """
create table effects (key text, type text, order_id text, seen_from real);
create table keys (key text primary key, refused text);
create table faults (type text, kind text, remaining integer, primary key (type, kind));
create table calls (key text, type text);
"""

Effect = tuple[str, str]
"""A business effect by its name in the world: action type and order."""


class _Desk:
    """Where the threads of this process work on books."""

    def __init__(self) -> None:
        self._at_work = 0
        self._leaving = False
        self._changed = threading.Condition()

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """One thread has books open."""
        with self._changed:
            self._changed.wait_for(lambda: not self._leaving)
            self._at_work += 1
        try:
            yield
        finally:
            with self._changed:
                self._at_work -= 1
                self._changed.notify_all()

    @contextmanager
    def left(self) -> Iterator[None]:
        """No thread has books open, and none opens any."""
        with self._changed:
            self._leaving = True
            try:
                self._changed.wait_for(lambda: self._at_work == 0)
                yield
            finally:
                self._leaving = False
                self._changed.notify_all()


_desk = _Desk()


def between_entries() -> AbstractContextManager[None]:
    """A moment at which this process has no books open.

    A provider is no part of the worker that calls it: stopped with a lock on its books, the worker would stop the
    provider for everybody.
    """
    return _desk.left()


@dataclass(frozen=True)
class Ledger:
    """The books of the providers that one schedule knows, and the faults they are told to have."""

    file: str

    def create(self) -> None:
        """Open new books."""
        with self.reading() as books:
            books.execute("pragma journal_mode = wal")  # who reads does not wait for who writes
            books.executescript(_TABLES)

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction that nobody else writes beside; a killed process leaves nothing of it."""
        with self.reading() as books:
            books.execute("begin immediate")
            yield books
            books.commit()

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """The books as they are; each statement by itself."""
        with _desk.at_work():
            books = sqlite3.connect(self.file, timeout=30, isolation_level=None)
            try:
                books.execute("pragma synchronous = off")  # the machine itself never fails here
                yield books
            finally:
                books.close()

    def break_down(self, action_type: str, kind: str, times: int = 1) -> None:
        """Let the next calls for an action type meet a fault (see `providers.py`)."""
        with self.writing() as books:
            books.execute(
                "insert into faults values (?, ?, ?)"
                " on conflict do update set remaining = remaining + excluded.remaining",
                (action_type, kind, times),
            )

    def repair(self) -> None:
        """Let every provider work."""
        with self.writing() as books:
            books.execute("delete from faults")

    def fault(self, books: sqlite3.Connection, action_type: str, *kinds: str) -> str | None:
        """The fault that this call meets; it is used up."""
        marks = ", ".join("?" * len(kinds))
        row = books.execute(
            f"select kind from faults where type = ? and kind in ({marks}) and remaining > 0 order by kind limit 1",
            (action_type, *kinds),
        ).fetchone()
        if row is None:
            return None
        books.execute("update faults set remaining = remaining - 1 where type = ? and kind = ?", (action_type, row[0]))
        kind: str = row[0]
        return kind

    def let_time_pass(self) -> None:
        """Whatever takes time to show, shows."""
        with self.writing() as books:
            books.execute("update effects set seen_from = 0")

    def write(self, books: sqlite3.Connection, key: str, effect: Effect, lag: float = 0.0) -> None:
        """A business effect happens."""
        books.execute("insert into effects values (?, ?, ?, ?)", (key, *effect, time.time() + lag))

    def calls(self, action_type: str) -> list[str]:
        """The keys of the calls that reached a provider, in their order."""
        with self.reading() as books:
            return [key for (key,) in books.execute("select key from calls where type = ?", (action_type,))]

    def effects(self) -> Counter[Effect]:
        """How often each business effect happened."""
        with self.reading() as books:
            return Counter((kind, order) for kind, order in books.execute("select type, order_id from effects"))
