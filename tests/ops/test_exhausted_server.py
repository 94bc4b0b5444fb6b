"""A server or a process that has run out of something: nothing is lost or done twice, and the next pass ends it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
import sqlalchemy as sa

from policies.errors import StoreContended, StoreUnavailable
from resources.store import engine
from resources.store.engine import Duty, close_engines, engine_for
from tests.ops.passes import Shop, refund
from tests.postgres import Database


@contextmanager
def disk_full(shop: Shop, table: str, when: str = "true") -> Iterator[None]:
    """The server answers a COMMIT with SQLSTATE 53100 wherever such a row was written."""
    shop.execute(
        "create function no_room() returns trigger language plpgsql as $$"
        " begin raise exception 'could not extend file: No space left on device' using errcode = '53100'; end $$"
    )
    shop.execute(
        f"create constraint trigger no_room after insert or update on {table} deferrable initially deferred"
        f" for each row when ({when}) execute function no_room()"
    )
    yield
    shop.execute("drop function no_room cascade")


def finish(shop: Shop) -> None:
    """What a worker left is taken back once its leases ran out."""
    shop.end_leases()
    shop.age_effects()
    shop.run()
    shop.run_again()


def assert_done_once(shop: Shop) -> None:
    """The saga is whole: each effect once, by the provider's own books, and the ledger tells it without a gap."""
    assert shop.states() == {"one": "completed"}
    for action in ("stock.reserve", "order.refund", "customer.tell"):
        assert len(shop.effects(action)) == len(shop.calls(action)) == 1, action
    shop.assert_ledger_intact()


@pytest.mark.parametrize(
    ("table", "when", "called"),
    [
        ("batch_runs", "true", 0),
        ("requests", "new.lease_token is not null", 0),
        ("proposals", "true", 0),
        ("findings", "true", 0),
        ("assessments", "true", 0),
        ("effects", "new.state = 'in_flight'", 0),
        ("effects", "new.state = 'done'", 1),
        ("requests", "new.state = 'completed'", 1),
        ("audit_heads", "true", 0),
    ],
)
def test_a_disk_that_is_full_at_a_commit_loses_and_doubles_nothing(
    shop: Shop, table: str, when: str, called: int
) -> None:
    """The pass fails and says what to do; what was sent is looked up, what was not is sent by the next one."""
    shop.queue({"one": refund("30.00", say="saga")})
    with disk_full(shop, table, when), pytest.raises(StoreUnavailable, match=r"no room left on its disk.*\(53100\)"):
        shop.run()
    assert len(shop.calls("stock.reserve")) == called
    finish(shop)
    assert_done_once(shop)


def test_a_disk_that_is_full_when_a_vote_is_cast_leaves_no_half_of_it(shop: Shop) -> None:
    """Neither vote nor release is there; cast again it counts once."""
    shop.queue({"one": refund("80.00")})
    shop.run()
    with disk_full(shop, "approval_votes"), pytest.raises(StoreUnavailable, match="53100"):
        shop.vote("one")
    assert (shop.count("approval_votes"), shop.count("approval_resolutions")) == (0, 0)
    assert shop.vote("one").outcome == "released"
    shop.run()
    assert (shop.states(), len(shop.effects())) == ({"one": "completed"}, 1)


@pytest.fixture
def worker_login(shop: Shop, database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker signs in by its own role: no limit of connections holds for a superuser."""
    monkeypatch.setenv("FAILSAFE_WORKER_URL", database.url("failsafe_worker"))


def limit(shop: Shop, connections: int) -> None:
    """How many sessions of plain roles the server takes; those there are end."""
    shop.execute(f"alter database {shop.database_name} connection limit {connections}")
    shop.execute(
        "select pg_terminate_backend(pid) from pg_stat_activity"
        " where datname = current_database() and usename = 'failsafe_worker'"
    )


@pytest.mark.usefixtures("worker_login")
def test_a_server_without_a_connection_left_begins_nothing(shop: Shop) -> None:
    """The error has the server's own words; when it takes connections again the pass goes through."""
    shop.queue({"one": refund("30.00", say="saga")})
    close_engines()
    limit(shop, 0)
    with pytest.raises(StoreUnavailable, match=r"too many connections for database .* run `failsafe doctor`"):
        shop.run()
    assert shop.calls("stock.reserve") == []
    limit(shop, -1)
    finish(shop)
    assert_done_once(shop)


@pytest.mark.usefixtures("worker_login")
@pytest.mark.parametrize("moment", ["before", "after"])
def test_connections_that_run_out_around_a_call_leave_it_to_be_looked_up(shop: Shop, moment: str) -> None:
    """The outcome cannot be written: it is unknown, never failed, and not sent again."""

    def cut_off(_key: str) -> None:
        limit(shop, 0)

    hooks: dict[str, Any] = {moment: cut_off}
    shop.hooked(**hooks)
    shop.queue({"one": refund("30.00", say="saga")})
    with pytest.raises(StoreUnavailable):
        shop.run()
    assert len(shop.calls("stock.reserve")) == 1
    shop.hooked()
    limit(shop, -1)
    finish(shop)
    assert_done_once(shop)


def test_a_pool_without_a_free_connection_says_so_in_time(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever waits for one of the process's own connections does not wait for ever, and nothing is begun."""
    monkeypatch.setattr(engine, "POOL_SECONDS", 0.05)
    close_engines()
    shop.queue({"one": refund("30.00", say="saga")})
    with ExitStack() as busy:
        for _ in range(12):
            busy.enter_context(engine_for(Duty.WORKER, shop.url).connect())
        with pytest.raises(StoreUnavailable, match=r"no connection of this process was free within 0.05 s"):
            shop.run()
    finish(shop)
    assert_done_once(shop)


@pytest.mark.parametrize("locked", ["select from providers for update", "select from audit_heads for update"])
def test_a_forgotten_session_on_what_all_need_ends_the_pass_and_says_so(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, locked: str
) -> None:
    """Nobody waits for it for ever; nothing was sent, and once it is gone the next pass does all."""
    shop.queue({"one": refund("30.00", say="saga")})
    shop.open()
    monkeypatch.setattr(engine, "_OPTIONS", "-c search_path=failsafe -c lock_timeout=50ms")
    close_engines()
    with shop.connect() as forgotten:
        forgotten.execute(sa.text(locked))
        with pytest.raises(StoreContended, match=r"Look for a long one, then run again. \(55P03"):
            shop.run()
        assert shop.calls("stock.reserve") == []
    finish(shop)
    assert_done_once(shop)


def test_a_session_that_idles_in_a_transaction_without_locks_is_nobodys_business(shop: Shop) -> None:
    """An old snapshot keeps no pass from its work."""
    shop.queue({"one": refund("30.00", say="saga")})
    with shop.connect() as forgotten:
        forgotten.execute(sa.text("set transaction isolation level repeatable read"))
        assert forgotten.execute(sa.text("select count(*) from requests")).scalar_one() == 1
        shop.run()
        assert_done_once(shop)
