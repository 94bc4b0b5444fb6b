"""What the tests of the store share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from resources.store.engine import close_engines
from tests.postgres import Database, Server
from tests.store.released import Worker
from tests.store.requests import Superuser


@pytest.fixture
def superuser(database: Database) -> Superuser:
    """A writer that no duty binds, on this test's database."""
    return Superuser(database)


@pytest.fixture(scope="module")
def worker(server: Server, migrated: Database) -> Iterator[Worker]:
    """A worker on a database that the tests of one file share; each makes requests of its own."""
    with server.database(template=str(migrated.superuser.database)) as database:
        yield Worker(database)
        close_engines()
