"""A store as revision 0001 left it: requests in every state, leases held, effects and an undo in flight."""

from __future__ import annotations

import gzip
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from resources.store.engine import close_engines
from tests.ops import toy
from tests.ops.passes import Shop
from tests.postgres import Database

DUMP = Path(__file__).with_name("store_at_0001.sql.gz")
"""What `pg_dump --inserts` wrote of a toy shop under the code of that revision. Each request is called by its state.

It is never made anew: later code cannot write a store of an earlier revision.
"""

DAY = "2026-11-29"
"""The batch of all its requests."""

HAPPENED = ("unknown_done", "in_flight_done", "undo_in_flight")
"""What its till did: effects recorded as done, and of the others those of these requests."""


@pytest.fixture
def old(
    migrated: Database, empty_database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Shop]:
    """The shop of that store, with its till, in a database still at 0001. Its roles are the server's."""
    monkeypatch.chdir(tmp_path)  # a till's file is its target, and part of every proposal
    address = empty_database.superuser.set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(address) as connection:
        connection.execute(gzip.decompress(DUMP.read_bytes()))
        connection.execute("set search_path = failsafe")
        connection.execute("update principals set name = name || ' of before'")
        # A dump ages; keys do so too, and none of these is older than its provider's memory.
        connection.execute("update effects set first_sent_at = now(), started_at = now() - interval '1 h'")
    shop = Shop(empty_database, tmp_path)
    shop.workflow = toy.toy_workflow(tmp_path, Path("till.sqlite"))
    shop.batch = DAY
    effects = shop.rows(
        "select e.idempotency_key, e.action_type from effects e join requests r on r.id = e.request_id"
        " where e.state = 'done' or e.state in ('unknown', 'in_flight') and r.operation_id = any (:happened)",
        happened=list(HAPPENED),
    )
    with sqlite3.connect(shop.till) as till:
        till.executemany("insert into effects values (?, ?, '{}')", map(tuple, effects))
    yield shop
    close_engines()


@pytest.fixture
def shop(database: Database, tmp_path: Path) -> Shop:
    """A shop on a store of this test's own, at the revision of this code."""
    return Shop(database, tmp_path)
