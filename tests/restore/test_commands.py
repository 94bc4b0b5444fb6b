"""What people say and are told about a restore."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.console.conftest import Terminal
from tests.ops import toy
from tests.ops.passes import Shop, refund
from tests.restore.conftest import Backup
from tests.restore.restoring import let_absence_count, released


@pytest.fixture
def token(shop: Shop) -> str:
    """An operator's."""
    return toy.principal(shop.url, "otto", ["operator"], kind="human")


def check(terminal: Terminal) -> tuple[str, str]:
    """What `failsafe doctor` says of restores."""
    [found] = [one for one in terminal.json("doctor", exit_code=1)["checks"] if one["name"] == "restore"]
    return found["level"], found["says"]


def test_an_operator_declares_a_restore(shop: Shop, tmp_path: Path, token: str) -> None:
    """It begins an epoch; status and doctor say how many requests wait, until runs have cleared them."""
    terminal = Terminal(shop.url, tmp_path)
    released(shop, {"one": refund()})
    assert check(terminal) == ("ok", "none since the first request")
    assert terminal.json("status")["restored"] is None
    said = terminal.json("db", "restored", "--reason", "dump of last night", token=token)
    assert said == {"epoch": 1, "waiting": 1}
    standing = terminal.json("status")["restored"]
    assert (standing["epoch"], standing["waiting"], standing["opened_by"]) == (1, 1, "otto")
    assert "1 open requests start nothing" in terminal.said("status")
    assert check(terminal)[0] == "advised"
    let_absence_count(shop)
    shop.run()
    assert shop.states() == {"one": "completed"}
    assert "start nothing" not in terminal.said("status")
    assert check(terminal)[0] == "ok"


def test_only_an_operator_declares_a_restore(shop: Shop, tmp_path: Path) -> None:
    """Others are told so, and no epoch begins."""
    terminal = Terminal(shop.url, tmp_path)
    lead = toy.principal(shop.url, "lena", ["lead"], kind="human")
    refused = terminal.run("db", "restored", "--reason", "dump of last night", token=lead)
    assert (refused.exit_code, "no operator" in refused.stderr) == (1, True)
    assert terminal.json("status")["restored"] is None


def test_a_restore_that_shows_is_told_before_any_run(shop: Shop, tmp_path: Path, backup: Backup) -> None:
    """Status and doctor see it as soon as somebody asks."""
    released(shop, {"one": refund()})
    backup()()
    terminal = Terminal(shop.url, tmp_path)
    assert terminal.json("status")["restored"]["waiting"] == 1
    assert "not opened yet" in terminal.said("status")
    assert "not opened yet" in check(terminal)[1]
