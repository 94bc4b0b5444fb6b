"""A schema is upgraded with work in flight: nothing is lost or done twice; no code runs on what it does not know."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic import command

from policies.errors import NotPossibleNow, SchemaMismatch
from resources.store import migrate
from resources.store.migrate import KNOWN_REVISIONS, SCHEMA_REVISION, upgrade
from tests.console.conftest import Terminal
from tests.ops.passes import Shop, refund
from tests.postgres import Server

NEXT, AFTER_NEXT = (f"{int(SCHEMA_REVISION) + more:04}" for more in (1, 2))

ENDS = {
    "received": "completed",
    "proposal_ready": "completed",
    "approved": "completed",
    "started_none": "completed",
    "in_flight_done": "completed",
    "in_flight_absent": "completed",
    "unknown_done": "completed",
    "compensating": "compensated",
    "undo_in_flight": "compensated",
}
"""What runs make of those that are neither parked, nor ended, nor waiting for a person."""


def effects(shop: Shop) -> dict[str, list[str]]:
    """Keys of the till's effects by action type."""
    return {kind: shop.effects(kind) for kind in ("order.refund", "stock.reserve", "stock.unreserve", "customer.tell")}


def test_a_store_with_work_in_flight_is_upgraded(old: Shop) -> None:
    """Every request keeps its state, lease and effects; then each goes on to its end, with one effect each."""
    columns = "id, state, state_seq, lease_token, lease_until, attempts, payload, last_event"
    before = old.rows(f"select {columns} from requests order by id")
    begun = old.rows("select idempotency_key, state, lease_token from effects order by 1")
    told = old.rows("select stream, seq, hash from audit_events order by 1, 2")
    assert {row.state for row in before} >= set(ENDS.values()) | {"received", "awaiting_approval", "dead_lettered"}
    assert any(row.lease_token for row in before)
    assert upgrade(old.url) == SCHEMA_REVISION
    assert old.rows(f"select {columns} from requests order by id") == before
    assert old.rows("select idempotency_key, state, lease_token from effects order by 1") == begun
    assert old.rows("select stream, seq, hash from audit_events order by 1, 2") == told

    was = old.states()
    old.run()
    old.run_again(3)
    assert old.states() == {one: ENDS.get(one, state) for one, state in was.items()}
    done = old.rows("select idempotency_key from effects where state = 'done' order by 1")
    assert sorted(key for keys in effects(old).values() for key in keys) == [row.idempotency_key for row in done]
    called = old.rows(
        "select r.operation_id from effects e join requests r on r.id = e.request_id"
        " where e.idempotency_key = any (:keys) order by 1",
        keys=old.calls() + old.calls("stock.unreserve"),
    )
    assert [row.operation_id for row in called] == [
        "approved",
        "compensating",
        "in_flight_absent",
        "proposal_ready",
        "received",
        "started_none",
    ]
    old.assert_ledger_intact()


def test_people_who_were_two_principals_are_named_before_the_upgrade(old: Shop) -> None:
    """Ids that differ only in case or blanks: nothing is changed until somebody said who is who."""
    [first, second] = [row.id for row in old.rows("select id from principals order by id limit 2")]
    for one, name, external_id in ((first, "first", "ann "), (second, "second", "Ann")):
        old.execute(
            "update principals set name = :name, external_id = :external_id where id = :id",
            id=one,
            name=name,
            external_id=external_id,
        )
    with pytest.raises(NotPossibleNow, match="of first, second differ only in case"):
        upgrade(old.url)
    old.execute("update principals set external_id = null where name = 'first'")
    assert upgrade(old.url) == SCHEMA_REVISION


def test_a_revision_never_changes(old: Shop, server: Server) -> None:
    """The dump has the tables that its revision makes: what a later release needs stands in a later revision."""
    columns = (
        "select table_name, column_name, data_type, is_nullable from information_schema.columns"
        " join pg_tables on schemaname = table_schema and tablename = table_name"
        " where table_schema = 'failsafe' order by 1, 2"
    )
    with server.database() as empty:
        engine = sa.create_engine(empty.url(), poolclass=sa.NullPool)
        with engine.begin() as connection:
            connection.exec_driver_sql("create schema failsafe")
            connection.exec_driver_sql("set local search_path = failsafe")
            command.upgrade(migrate._configuration(connection), "0001")  # noqa: SLF001
            made = connection.execute(sa.text(columns)).all()
    assert [tuple(row) for row in old.rows(columns)] == [tuple(row) for row in made]


def test_new_code_stops_before_the_upgrade(old: Shop) -> None:
    """It touches no row, names the remedy, and runs once that was done."""
    runs = old.count("batch_runs")
    with pytest.raises(SchemaMismatch, match=r"revision 0001, this code runs on .*failsafe db upgrade"):
        old.run()
    assert old.count("batch_runs") == runs
    upgrade(old.url)
    old.run()


def test_code_runs_on_its_own_revision_and_the_next(shop: Shop) -> None:
    """The next one only adds, so workers go on while it is rolled out; of the one after they know nothing and stop."""
    assert {SCHEMA_REVISION, NEXT} == KNOWN_REVISIONS
    shop.queue({"one": refund("80.00"), "two": refund(order="A2")})
    shop.run()
    expand(shop, NEXT)
    shop.vote("one")
    shop.run()
    assert shop.states() == {"one": "completed", "two": "completed"}
    shop.queue({"three": refund(order="A3")})
    expand(shop, AFTER_NEXT)
    with pytest.raises(SchemaMismatch, match=rf"revision {AFTER_NEXT}.*deploy the matching version"):
        shop.run()
    assert shop.states()["three"] == "received"


def expand(shop: Shop, revision: str) -> None:
    """What an upgrade by a later release does: it adds, and says so."""
    shop.execute(f"alter table requests add column of_{revision} text")
    shop.execute(f"alter table effects add column of_{revision} integer not null default 0")
    shop.execute("update schema_revision set version_num = :revision", revision=revision)


@contextmanager
def passes(shop: Shop) -> Iterator[Future[int]]:
    """A worker that makes one pass after the other until the block ends."""
    over = threading.Event()

    def work() -> int:
        made = 0
        while not over.is_set():
            shop.run()
            made += 1
        return made

    with ThreadPoolExecutor(1) as pool:
        working = pool.submit(work)
        try:
            yield working
        finally:
            over.set()


def test_an_upgrade_runs_beside_live_work(shop: Shop) -> None:
    """Workers advance requests all the while; neither they nor the upgrade fail, and each effect is there once."""
    shop.queue({"first": refund(order="A0")})
    shop.run()
    with passes(shop) as working:
        for turn in range(6):
            shop.queue({f"{turn}-{one}": refund(order=f"A{one}", say="saga") for one in range(20)})
            upgrade(shop.url)
            assert not working.done(), working.exception()
    assert working.result() > 0
    shop.run_again(3)
    assert set(shop.states().values()) == {"completed"}
    for kind in ("order.refund", "stock.reserve", "customer.tell"):
        assert sorted(shop.calls(kind)) == shop.effects(kind)
    assert len(shop.effects("stock.reserve")) == 120


def test_two_upgrades_take_turns(shop: Shop) -> None:
    """The second waits until the first is through."""
    with shop.connect() as first, ThreadPoolExecutor(1) as pool:
        first.execute(sa.text(f"select pg_advisory_xact_lock({migrate._UPGRADE_LOCK})"))  # noqa: SLF001
        second = pool.submit(upgrade, shop.url)
        time.sleep(1)
        assert not second.done()
        first.rollback()
        assert second.result(timeout=30) == SCHEMA_REVISION


def test_an_upgrade_does_not_queue_for_ever(old: Shop, tmp_path: Path) -> None:
    """Behind a long transaction it gives up table locks in seconds, so that writers get by, and says so in one line."""
    with old.connect() as long:
        long.execute(sa.text("select count(*) from requests"))
        began = time.monotonic()
        refused = Terminal(old.url, tmp_path).run("db", "upgrade")
        assert 3 < time.monotonic() - began < 40
        assert (refused.exit_code, "55P03" in refused.stderr) == (1, True)
        assert migrate.current_revision(long) == "0001", "nothing of it was kept"
    assert upgrade(old.url) == SCHEMA_REVISION
