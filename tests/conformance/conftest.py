"""What the tests of conformance share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.house import House
from tests.postgres import Database


@pytest.fixture
def house(database: Database, tmp_path: Path) -> House:
    """A store of the test's own, with its people."""
    return House(database, tmp_path)
