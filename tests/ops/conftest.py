"""What the tests of the steps share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from resources.store.engine import close_engines
from tests.ops.passes import Shop
from tests.postgres import Database, Server


@pytest.fixture
def shop(database: Database, tmp_path: Path) -> Shop:
    """A shop on a store of this test's own."""
    return Shop(database, tmp_path)


@pytest.fixture(scope="module")
def shared_shop(server: Server, migrated: Database, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """A shop that the tests of one file share."""
    with server.database(template=str(migrated.superuser.database)) as database:
        yield Shop(database, tmp_path_factory.mktemp("shop"))
        close_engines()
