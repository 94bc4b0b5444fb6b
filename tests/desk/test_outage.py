"""The store goes away under the desk."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

import sqlalchemy as sa

from tests.console.test_review import document
from tests.desk.conftest import Visitor
from tests.postgres import Database
from tests.store.requests import Person, Superuser


@contextmanager
def away(database: Database) -> Iterator[None]:
    """No session of the database goes on, and none begins, while the block runs."""
    name = database.superuser.database
    server = sa.create_engine(database.superuser.set(database="postgres"), isolation_level="AUTOCOMMIT")
    with server.connect() as connection:
        connection.exec_driver_sql(f"alter database {name} allow_connections false")
        ended = "select pg_terminate_backend(pid) from pg_stat_activity where datname = %s"
        connection.exec_driver_sql(ended, (name,))
        try:
            yield
        finally:
            connection.exec_driver_sql(f"alter database {name} allow_connections true")
    server.dispose()


def test_a_click_that_does_not_reach_the_store_fails_visibly(
    database: Database, visitor: Visitor, superuser: Superuser, clerk: Person, lead: Person
) -> None:
    """The page never says that something was decided which was not, and the same click later is counted."""
    asked = superuser.asked(clerk, document=json.loads(document()))
    visitor.sign_in(lead)
    with away(database):
        lost = visitor.vote(asked, "approve")
    assert lost.status_code >= 500
    assert "released" not in lost.text
    assert superuser.state(asked.id) == "awaiting_approval"
    assert visitor.vote(asked, "approve").status_code == 303
    assert superuser.state(asked.id) == "executing"
