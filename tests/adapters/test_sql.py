"""The SQL adapter against a real PostgreSQL: effect and key stand or fall together."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from typing import Any

import dagster as dg
import psycopg
import pytest

from policies.actions import Action
from policies.errors import DefinitionError, NotExecuted
from policies.money import Money
from policies.outcomes import Done, Refused
from resources.adapters.base import opened
from resources.adapters.outcome import Unknown, call, look_up
from resources.adapters.sql import SqlAdapter
from resources.adapters.sql_statement import translated
from tests.adapters.actions import Pay, pay
from tests.postgres import Database

PAYMENTS = """
create table payments (id bigserial primary key, payee text not null, minor bigint check (minor > 0), note text unique);
create table budget (name text primary key, open_minor bigint not null check (open_minor >= 0));
insert into budget values ('travel', 10000);
create function close_budget(of text) returns text language plpgsql as
  $$ begin raise exception 'budget % is closed', of; end $$;
"""
INSERT = """
insert into payments (payee, minor, note) values (:payee, :amount_minor, :note) returning id as reference, minor"""


class Reserve(Action, name="budget.reserve", reversible=False):
    budget: str
    amount: Money
    tip: Money | None = None
    day: date = date(2026, 11, 29)
    labels: list[str] = []  # noqa: RUF012  # pydantic copies defaults


class Close(Action, name="budget.close", reversible=False):
    budget: str


STATEMENTS = {
    "pay.send": INSERT,
    "budget.reserve": """
        update budget set open_minor = open_minor - :amount_minor
         where name = :budget and :day::date > date '2000-01-01' and :tip_minor::bigint is null
           and :labels::jsonb = '["50%"]' and name like '%'
        returning open_minor""",
    "budget.close": "select close_budget(:budget)",
}


@pytest.fixture
def bank(empty_database: Database, monkeypatch: pytest.MonkeyPatch) -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
    """A connection to the target database."""
    monkeypatch.setenv("BANK_URL", empty_database.url())
    with psycopg.connect(empty_database.url().replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute(PAYMENTS)
        yield connection


@pytest.fixture
def live(bank: psycopg.Connection[tuple[Any, ...]]) -> Iterator[SqlAdapter]:
    """The adapter, opened, its table of keys made."""
    one = opened(SqlAdapter(url=dg.EnvVar("BANK_URL"), statements=STATEMENTS))
    one.create_key_table()
    one.create_key_table()
    yield one
    one.close()


def rows(bank: psycopg.Connection[tuple[Any, ...]], table: str = "payments") -> int:
    """How many rows a table has."""
    counted = bank.execute(f"select count(*) from {table}").fetchone()
    assert counted is not None
    return int(counted[0])


def test_an_effect_and_its_key_are_written_once(live: SqlAdapter, bank: psycopg.Connection[tuple[Any, ...]]) -> None:
    """The first row returned is the result; a repeat returns what is stored, and so does a look-up."""
    first = call(live, pay(note="a"), "k")
    assert first == Done("1", {"reference": 1, "minor": 4820})
    assert call(live, pay(note="a"), "k") == first
    assert look_up(live, "k") == first
    assert look_up(live, "other") is None
    assert rows(bank) == 1


def test_a_repeat_is_recognised_where_the_effect_itself_would_fail(
    live: SqlAdapter, bank: psycopg.Connection[tuple[Any, ...]]
) -> None:
    """A second use that violates a constraint of the target is still the first one's replay, not a refusal."""
    reserve = Reserve(budget="travel", amount=Money(minor=8000, currency="EUR"), labels=["50%"])
    first = call(live, reserve, "k")
    assert first == Done("k", {"open_minor": 2000})
    assert call(live, reserve, "k") == first
    assert bank.execute("select open_minor from budget").fetchone() == (2000,)


def test_a_reused_key_is_refused_and_changes_nothing(
    live: SqlAdapter, bank: psycopg.Connection[tuple[Any, ...]]
) -> None:
    """Other parameters under the same key are our own mistake; what is stored stays."""
    first = call(live, pay(note="a"), "k")
    refused = call(live, pay(4821, note="b"), "k")
    assert isinstance(refused, Refused)
    assert refused.code == "key_reused_with_other_body"
    assert look_up(live, "k") == first
    assert rows(bank) == 1


def test_refusals_are_stored_under_the_key(live: SqlAdapter, bank: psycopg.Connection[tuple[Any, ...]]) -> None:
    """A violated constraint, no row and a function's exception are definite, and stay so when the world changes."""
    nobody = Reserve(budget="nobody", amount=Money(minor=1, currency="EUR"), labels=["50%"])
    for key, action, code in (
        ("negative", pay(-1), "payments_minor_check"),
        ("nobody", nobody, "no_row"),
        ("closed", Close(budget="travel"), "P0001"),
        ("nul", pay(payee="a\0b"), "DataError"),
        ("surrogate", pay(payee="a\ud800"), "UnicodeEncodeError"),
    ):
        refused = call(live, action, key)
        assert isinstance(refused, Refused), key
        assert refused.code == code
        if key == "nobody":
            bank.execute("insert into budget values ('nobody', 100)")
        assert call(live, action, key) == refused
        assert look_up(live, key) == refused
    assert rows(bank) == 0


def test_many_at_once_under_one_key_make_one_effect(
    live: SqlAdapter, bank: psycopg.Connection[tuple[Any, ...]]
) -> None:
    """The unique key decides the race; the losers get the winner's outcome."""
    with ThreadPoolExecutor(8) as threads:
        outcomes = list(threads.map(lambda _: call(live, pay(note="a"), "k"), range(40)))
    assert set(map(repr, outcomes)) == {repr(look_up(live, "k"))}
    assert rows(bank) == 1


def test_what_the_database_says_it_did_not_run_is_not_executed(
    live: SqlAdapter, bank: psycopg.Connection[tuple[Any, ...]]
) -> None:
    """A missing table and a lock that is not granted in time were rolled back; the key stays usable."""
    bank.execute("alter table payments rename to gone")
    outcome = call(live, pay(note="a"), "k")
    assert isinstance(outcome, NotExecuted)
    assert "42P01" in str(outcome)
    bank.execute("alter table gone rename to payments")
    impatient = opened(SqlAdapter(url=dg.EnvVar("BANK_URL"), statements=STATEMENTS, timeout_seconds=3.6))
    with bank.transaction():
        bank.execute("lock table payments")
        outcome = call(impatient, pay(note="a"), "k")
        assert isinstance(outcome, NotExecuted)
        assert "57014" in str(outcome)
    assert isinstance(call(impatient, pay(note="a"), "k"), Done)
    impatient.close()


def test_a_lost_connection_is_unknown_and_the_next_call_connects_anew(
    live: SqlAdapter, bank: psycopg.Connection[tuple[Any, ...]]
) -> None:
    """A session ended while the statement waited may have committed for all we know."""
    done = threading.Event()
    outcomes: list[Any] = []

    def wait_for_lock() -> None:
        outcomes.append(call(live, pay(note="a"), "k"))
        done.set()

    waiting = "select pid from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
    with bank.transaction():
        bank.execute("lock table payments")
        threading.Thread(target=wait_for_lock, daemon=True).start()
        while (blocked := bank.execute(waiting).fetchone()) is None:
            bank.execute("select pg_sleep(0.01)")
        bank.execute("select pg_terminate_backend(%s)", blocked)
        assert done.wait(10)
    assert isinstance(outcomes[0], Unknown)
    assert "57P01" in outcomes[0].reason
    assert look_up(live, "k") is None
    assert isinstance(call(live, pay(note="a"), "k"), Done)


def test_an_unreachable_database_executed_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """No connection, no effect; neither address nor password is told."""
    monkeypatch.setenv("BANK_URL", "postgresql://teller:pa55word@127.0.0.1:9/bank")
    one = opened(SqlAdapter(url=dg.EnvVar("BANK_URL"), statements=STATEMENTS))
    outcome = call(one, pay(), "k")
    assert isinstance(outcome, NotExecuted)
    assert "pa55word" not in f"{outcome} {one!r} {one.target()}"
    one.close()


def test_a_wrong_address_is_refused_when_it_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    """And not repeated, since it is a secret."""
    monkeypatch.setenv("BANK_URL", "this is no address")
    with pytest.raises(DefinitionError, match="no PostgreSQL address") as caught:
        opened(SqlAdapter(url=dg.EnvVar("BANK_URL"), statements=STATEMENTS))
    assert "this is" not in str(caught.value)


@pytest.mark.parametrize(
    ("statement", "driver", "names"),
    [
        ("select :a, :b_2, :a", "select %(a)s, %(b_2)s, %(a)s", {"a", "b_2"}),
        ("select :a::date, '1'::int", "select %(a)s::date, '1'::int", {"a"}),
        ("select ':a' || 'it''s :b' || E'\\':c'", "select ':a' || 'it''s :b' || E'\\':c'", set()),
        ('select ":a" -- :b\n/* :c\n */', 'select ":a" -- :b\n/* :c\n */', set()),
        ("select $$:a$$, $x$ :b $$ $x$", "select $$:a$$, $x$ :b $$ $x$", set()),
        ("select 5 % :a, '100%'", "select 5 %% %(a)s, '100%%'", {"a"}),
    ],
)
def test_only_named_parameters_are_translated(statement: str, driver: str, names: set[str]) -> None:
    """Texts, comments, quoted names and casts keep their colons, and every percent sign is the driver's own."""
    assert translated(statement) == (driver, names)


def test_statements_are_checked_against_the_action() -> None:
    """A missing statement and an unknown parameter are definition errors that list what there is."""
    adapter = SqlAdapter(url=dg.EnvVar("BANK_URL"), statements={"pay.send": "select f(:payee, :amount)"})
    with pytest.raises(DefinitionError, match="no parameter amount; there are payee, amount_minor, amount_currency"):
        adapter.check_executes(Pay)
    with pytest.raises(DefinitionError, match=r'add the statement of "budget\.close"'):
        adapter.check_executes(Close)
    with pytest.raises(DefinitionError, match="more than 3"):
        SqlAdapter(url=dg.EnvVar("BANK_URL"), statements={}, timeout_seconds=3)


def test_the_target_is_host_database_user_and_statement_but_no_password(monkeypatch: pytest.MonkeyPatch) -> None:
    """A changed password is the same target; another database or statement is not."""
    adapter = SqlAdapter(url=dg.EnvVar("BANK_URL"), statements=STATEMENTS)
    targets = []
    for url in (
        "postgresql://teller:one@db.example/bank",
        "postgresql+psycopg://teller:two@db.example/bank",
        "postgresql://teller:one@db.example/other",
        "postgresql://other:one@db.example/bank",
    ):
        monkeypatch.setenv("BANK_URL", url)
        targets.append(adapter.target())
    monkeypatch.delenv("BANK_URL")
    targets += [adapter.target(), SqlAdapter(url=dg.EnvVar("BANK_URL"), statements={}).target()]
    assert targets[0] == targets[1]
    assert len(set(targets)) == 5
    assert not any(word in target for target in targets for word in (":one", ":two", '"one"', '"two"'))


def test_connections_are_reused_by_changing_threads(
    live: SqlAdapter, bank: psycopg.Connection[tuple[Any, ...]]
) -> None:
    """Threads come and go with every chunk; the connections stay, no more than calls at once."""
    for round_ in range(3):
        with ThreadPoolExecutor(3) as threads:
            list(threads.map(lambda one, of=round_: call(live, pay(note=f"{of}.{one}"), f"{of}.{one}"), range(12)))
    open_now = bank.execute("select count(*) from pg_stat_activity where datname = current_database()").fetchone()
    assert open_now is not None
    assert open_now[0] <= 1 + 3
