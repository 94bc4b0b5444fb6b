"""What the tests of operators share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.operator.desk import Desk
from tests.operator.supplying import Supplying
from tests.ops.passes import Shop
from tests.postgres import Database


@pytest.fixture
def shop(database: Database, tmp_path: Path) -> Shop:
    """A shop on a store of this test's own."""
    return Shop(database, tmp_path)


@pytest.fixture
def desk(shop: Shop) -> Desk:
    """The operator's desk at that shop."""
    return Desk(shop)


@pytest.fixture
def supplying(shop: Shop) -> Supplying:
    """One request that lacks something."""
    return Supplying(shop)
