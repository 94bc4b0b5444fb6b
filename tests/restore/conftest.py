"""A shop whose store can be backed up, and brought back as it was then."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from resources.store.engine import close_engines
from tests.operator.desk import Desk
from tests.ops.passes import Shop
from tests.postgres import Database, Server


@pytest.fixture
def shop(database: Database, tmp_path: Path) -> Shop:
    """A shop on a store of this test's own."""
    return Shop(database, tmp_path)


@pytest.fixture
def desk(shop: Shop) -> Desk:
    """The operator's desk at that shop."""
    return Desk(shop)


Backup = Callable[[], Callable[[], None]]
"""Takes a backup; what it returns puts it in the place of the shop's store, as of then."""


@pytest.fixture
def backup(server: Server, shop: Shop) -> Iterator[Backup]:
    """Backups of the shop's store: copies of its database, made while nobody is connected."""
    with ExitStack() as copies:

        def take() -> Callable[[], None]:
            close_engines()
            copy = copies.enter_context(server.database(template=shop.database_name))
            return lambda: shop.move_to(copy)

        yield take
        close_engines()
