"""The processes that `failsafe dev` keeps: none of them ends unnoticed, and none outlives it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from console.process_group import ProcessGroups

SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]


@pytest.mark.timeout(20)
@pytest.mark.parametrize("which", ["dagster", "desk", "provider"])
def test_any_of_them_that_ends_is_named(tmp_path: Path, which: str) -> None:
    """Not only the first or the last one; the others are ended with it."""
    with ProcessGroups(os.environ, tmp_path) as children:
        started = {name: children.start(name, SLEEP) for name in ("dagster", "desk", "provider")}
        children.kill(started[which])
        assert children.wait_for_an_end() == which
        assert [name for name, child in started.items() if child.poll() is not None] == [which]
    assert all(child.poll() is not None for child in started.values())


def test_what_a_child_said_stands_in_its_log(tmp_path: Path) -> None:
    """That is where its end is explained."""
    with ProcessGroups(os.environ, tmp_path) as children:
        children.start("desk", [sys.executable, "-c", "raise SystemExit('the port is taken')"])
        assert children.wait_for_an_end() == "desk"
    assert (tmp_path / "desk.log").read_text() == "the port is taken\n"


def test_what_children_leave_in_their_temporary_folder_goes_with_them(tmp_path: Path) -> None:
    """Sockets of Dagster's servers, mostly."""
    left = "import pathlib, tempfile; pathlib.Path(tempfile.mkdtemp(), 'left').touch(); print(tempfile.gettempdir())"
    with ProcessGroups(os.environ, tmp_path) as children:
        children.start("provider", [sys.executable, "-c", left]).wait()
        folder = Path((tmp_path / "provider.log").read_text().strip())
        assert list(folder.glob("*/left"))
    assert not folder.exists()
