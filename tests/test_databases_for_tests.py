"""The databases that tests get are theirs alone and do not pile up."""

from __future__ import annotations

import secrets

import pytest
from sqlalchemy import NullPool, create_engine, make_url, text

from tests.postgres import Database, Server


def exists(database: Database, beside: Database) -> bool:
    """Whether `database` is on the server, asked from another one there."""
    with create_engine(beside.url(), poolclass=NullPool).connect() as connection:
        name = {"name": database.superuser.database}
        return connection.scalar(text("select 1 from pg_database where datname = :name"), name) is not None


def test_a_session_drops_what_a_killed_session_left_and_nothing_of_a_living_one(empty_database: Database) -> None:
    """A session that ended without cleaning up loses its databases to the next; one that still runs keeps them."""
    url = make_url(empty_database.url()).set(database="postgres")
    left = Database(url.set(database=f"failsafe_test_{secrets.randbelow(2**31)}_1"))
    with create_engine(url, isolation_level="AUTOCOMMIT", poolclass=NullPool).connect() as connection:
        connection.execute(text(f"create database {left.superuser.database}"))
    living = Server(url)
    assert not exists(left, beside=empty_database)
    with living.database() as kept:
        Server(url).close()
        assert exists(kept, beside=empty_database)
    living.close()


def test_a_database_is_dropped_though_somebody_is_connected(server: Server, empty_database: Database) -> None:
    """A test that forgot a connection does not keep its database."""
    with server.database() as database:
        forgotten = create_engine(database.url(), poolclass=NullPool).connect()
    assert not exists(database, beside=empty_database)
    forgotten.invalidate()
    forgotten.close()


@pytest.mark.parametrize(
    "role", ["failsafe_intake", "failsafe_worker", "failsafe_reviewer", "failsafe_operator", "failsafe_auditor"]
)
def test_every_login_role_signs_in_to_a_migrated_database(database: Database, role: str) -> None:
    """The URL for a role works on both kinds of server, and is that role's own."""
    with create_engine(database.url(role), poolclass=NullPool).connect() as connection:
        assert connection.scalar(text("select session_user")) == role
