"""Bad items in a chunk: exactly they are refused, each with the reason; everything else is about the moment."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy.exc import DBAPIError

from resources.store.isolation import write_in_halves
from tests.store.released import Worker

TABLE = "create temporary table kept (value integer constraint no_negative check (value >= 0)) on commit drop"


def insert(connection: sa.Connection, values: Sequence[int]) -> None:
    """Write values in one statement."""
    statement = sa.text("insert into kept select * from unnest(cast(:values as integer[]))")
    connection.execute(statement, {"values": list(values)})


@settings(max_examples=25, deadline=None)
@given(values=st.lists(st.integers(-3, 40), max_size=40))
def test_exactly_the_bad_items_are_refused(worker: Worker, values: list[int]) -> None:
    """However many there are and wherever they stand, all others are written, each once."""
    with worker.superuser.engine.begin() as connection:
        connection.execute(sa.text(TABLE))
        refused = write_in_halves(connection, values, lambda part: insert(connection, part))
        kept = connection.execute(sa.text("select value from kept")).scalars().all()
    assert sorted(kept) == sorted(value for value in values if value >= 0)
    assert [value for value, _ in refused] == [value for value in values if value < 0]
    assert {why for _, why in refused} <= {"the database refused it: SQLSTATE 23514, no_negative"}


def test_what_a_refused_part_wrote_before_is_undone_with_it(worker: Worker) -> None:
    """Several statements for one item stand or fall together."""

    def twice(part: Sequence[int]) -> None:
        insert(connection, [abs(value) for value in part])
        insert(connection, part)

    with worker.superuser.engine.begin() as connection:
        connection.execute(sa.text(TABLE))
        write_in_halves(connection, [1, -2, 3], twice)
        kept = connection.execute(sa.text("select value from kept order by 1")).scalars().all()
    assert kept == [1, 1, 3, 3]


@pytest.mark.parametrize(
    "statement",
    [
        "do $$ begin raise exception 'deadlock' using errcode = '40P01'; end $$",
        "do $$ begin raise exception 'serialisation' using errcode = '40001'; end $$",
        "do $$ begin raise exception 'shutdown' using errcode = '57P01'; end $$",
        "select * from no_such_table",
    ],
)
def test_an_error_that_no_item_causes_is_raised(worker: Worker, statement: str) -> None:
    """A deadlock, a shutdown or a missing table is nobody's fault in the chunk, so nobody is parked for it."""
    tried: list[int] = []

    def fail(part: Sequence[int]) -> None:
        tried.append(len(part))
        connection.execute(sa.text(statement))

    with pytest.raises(DBAPIError), worker.superuser.engine.begin() as connection:
        write_in_halves(connection, [1, 2, 3, 4], fail)
    assert tried == [4]


def test_the_database_s_own_guards_are_about_one_item(worker: Worker) -> None:
    """An illegal transition in a chunk is refused alone."""
    good, bad = worker.released(), worker.released()

    def complete(part: Sequence[object]) -> None:
        connection.execute(
            sa.text(
                "update requests set state = 'completed', state_seq = state_seq + 1, closed_at = clock_timestamp(),"
                " last_event = case when id = :bad then 'denied' else 'effects_done' end where id = any (:ids)"
            ),
            {"bad": bad.id, "ids": list(part)},
        )

    with worker.superuser.engine.begin() as connection:
        refused = write_in_halves(connection, [good.id, bad.id], complete)
    assert refused == [(bad.id, "the database refused it: SQLSTATE FS002")]
    assert (worker.superuser.state(good.id), worker.superuser.state(bad.id)) == ("completed", "executing")
