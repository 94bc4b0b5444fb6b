"""Where schedules are played in tests: on databases that the tests of one file share, each in a world of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from resources.store.engine import close_engines
from tests.faults.places import make_bank
from tests.faults.world import Place
from tests.postgres import Database, Server


@pytest.fixture(scope="module")
def place(server: Server, migrated: Database, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A store and a bank."""
    template = str(migrated.superuser.database)
    with server.database(template) as store, server.database() as bank, pytest.MonkeyPatch.context() as patch:
        place = Place(store.url(), make_bank(bank.url(), patch.setenv), tmp_path_factory.mktemp("place"))
        with place.connect().begin() as connection:
            # The server itself does not fail here, and waiting for its disk is most of what a pass costs.
            connection.execute(sa.text(f"alter database {store.superuser.database} set synchronous_commit = off"))
        yield place
        close_engines()
