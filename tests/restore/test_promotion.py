"""A standby that is promoted goes on without what its primary had not sent it: the store notices by the timeline."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy import NullPool, create_engine, make_url

from resources.embedded_postgres import EmbeddedPostgres
from resources.store.engine import close_engines
from resources.store.migrate import upgrade
from resources.store.restores import restore_standing
from tests.ops.passes import Shop, refund
from tests.postgres import Database
from tests.restore.restoring import released


@pytest.fixture
def own_server(servers: Path) -> Iterator[EmbeddedPostgres]:
    """A server of this test's own."""
    server = EmbeddedPostgres(servers / "promoted")
    server.start()
    yield server
    close_engines()
    server.remove()


def test_a_promotion_is_noticed(own_server: EmbeddedPostgres, tmp_path: Path) -> None:
    """From its first moment on, though the control file tells of it only later; a mere restart is none."""
    upgrade(own_server.url())
    shop = Shop(Database(make_url(own_server.url())), tmp_path)
    released(shop, {"one": refund()})
    close_engines()
    own_server.stop()
    own_server.start()
    assert restore_standing(shop.url) is None
    close_engines()
    own_server.stop()

    signal = own_server.log.with_name("data") / "standby.signal"
    signal.touch()
    shutil.chown(signal, user=signal.parent.owner())
    own_server.start()
    assert restore_standing(shop.url) is None, "a standby that is only read is where it was"
    close_engines()
    with create_engine(shop.url, poolclass=NullPool).connect() as connection:
        assert connection.scalar(sa.text("select pg_promote()"))
    standing = restore_standing(shop.url)
    assert standing is not None
    assert standing.waiting == 1
    shop.run()
    assert (shop.states(), shop.calls()) == ({"one": "executing"}, [])
