"""What the tests of approvals share: a store per test or per file, reviewers with their own sessions, a shop."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from resources.store.engine import close_engines
from tests.approvals.asking import Asking
from tests.ops.passes import Shop
from tests.postgres import Database, Server
from tests.store.released import Worker


@pytest.fixture(scope="module")
def file_database(server: Server, migrated: Database) -> Iterator[Database]:
    """A store that the tests of one file share; each makes people and requests of its own."""
    with server.database(template=str(migrated.superuser.database)) as database:
        yield database
        close_engines()


@pytest.fixture(scope="module")
def asking(file_database: Database) -> Asking:
    """Who asks and who decides, on the file's store."""
    return Asking(file_database)


@pytest.fixture(scope="module")
def worker(asking: Asking) -> Worker:
    """A worker on the file's store."""
    return asking.worker


@pytest.fixture
def shop(database: Database, tmp_path: Path) -> Shop:
    """A shop on a store of the test's own."""
    return Shop(database, tmp_path)
