"""What really happened at the sandbox provider: every call, every answer given for good, every business effect."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SCHEMA = """
CREATE TABLE IF NOT EXISTS calls (
    id INTEGER PRIMARY KEY, at REAL NOT NULL, path TEXT NOT NULL, key TEXT, body TEXT NOT NULL, answer TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS answers (
    key TEXT PRIMARY KEY, path TEXT NOT NULL, body TEXT NOT NULL, status INTEGER NOT NULL, content TEXT NOT NULL,
    at REAL NOT NULL);
-- No unique key here on purpose: this table counts what happened, so that a repeated effect can be seen.
CREATE TABLE IF NOT EXISTS effects (
    id INTEGER PRIMARY KEY, at REAL NOT NULL, path TEXT NOT NULL, key TEXT NOT NULL, body TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS effects_by_key ON effects (key);
"""


@dataclass(frozen=True, slots=True)
class Answer:
    """The first answer to a key, as it was given. `path` and `body` (canonical JSON) are what the key stands for."""

    path: str
    body: str
    status: int
    content: str
    at: float


class Ledger:
    """One SQLite file, one connection. Every method commits before it returns, so a killed provider forgets nothing."""

    def __init__(self, path: Path) -> None:
        self._database = sqlite3.connect(path, isolation_level=None)
        self._database.execute("PRAGMA journal_mode = WAL")
        # A commit reaches the operating system, which outlives a killed process; only a power cut could lose it.
        self._database.execute("PRAGMA synchronous = NORMAL")
        self._database.executescript(SCHEMA)

    def close(self) -> None:
        """End the connection."""
        self._database.close()

    def note_call(self, path: str, key: str | None, body: str, answer: str, at: float) -> None:
        """Keep that a call was received and what became of it."""
        self._database.execute(
            "INSERT INTO calls (at, path, key, body, answer) VALUES (?, ?, ?, ?, ?)", (at, path, key, body, answer)
        )

    def answer(self, key: str) -> Answer | None:
        """The first answer given for `key`."""
        row = self._database.execute(
            "SELECT path, body, status, content, at FROM answers WHERE key = ?", (key,)
        ).fetchone()
        return None if row is None else Answer(*row)

    def settle(self, key: str, answer: Answer, *, effect: bool) -> None:
        """Make the effect, if there is one, and keep the first answer for the key: both or neither."""
        with self._database:
            self._database.execute("BEGIN IMMEDIATE")
            if effect:
                self._database.execute(
                    "INSERT INTO effects (at, path, key, body) VALUES (?, ?, ?, ?)",
                    (answer.at, answer.path, key, answer.body),
                )
            self._database.execute(
                "INSERT OR IGNORE INTO answers (key, path, body, status, content, at) VALUES (?, ?, ?, ?, ?, ?)",
                (key, answer.path, answer.body, answer.status, answer.content, answer.at),
            )

    def effects(self) -> list[dict[str, Any]]:
        """Every business effect in the order it happened."""
        rows = self._database.execute("SELECT id, at, path, key, body FROM effects ORDER BY id")
        return [dict(zip(("id", "at", "path", "key", "body"), row, strict=True)) for row in rows]

    def counts(self) -> dict[str, Any]:
        """Calls received, effects by path, and the keys that had more than one effect."""
        one = self._database.execute
        return {
            "calls": one("SELECT count(*) FROM calls").fetchone()[0],
            "replays": one("SELECT count(*) FROM calls WHERE answer = 'replayed'").fetchone()[0],
            "effects": dict(one("SELECT path, count(*) FROM effects GROUP BY path ORDER BY path")),
            "duplicates": dict(one("SELECT key, count(*) FROM effects GROUP BY key HAVING count(*) > 1 ORDER BY key")),
        }
