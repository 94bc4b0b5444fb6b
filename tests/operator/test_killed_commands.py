"""What people decide, killed around its commit: all of it is there or nothing, and said again it counts once."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from typing import Any

import pytest
import sqlalchemy as sa

from policies.errors import VoteRefused
from resources.store import operator, restores, votes
from resources.store.engine import Duty, engine_for
from tests.operator.desk import WHY, Desk
from tests.operator.test_cancel import as_awaiting_approval, as_dead_lettered, as_executing
from tests.ops.passes import Shop
from tests.ops.workers import kill, wait_for_lock, wait_until


def vote(url: str, session: votes.Session, asked: dict[str, Any]) -> str:
    """Approve what is asked."""
    return votes.cast_vote(url, session, vote="approve", **asked).outcome


def cancel(url: str, session: votes.Session, asked: dict[str, Any]) -> str:
    """Cancel the request."""
    return operator.cancel(url, session, asked["request_id"], WHY).value


def redrive(url: str, session: votes.Session, asked: dict[str, Any]) -> str:
    """Redrive the request."""
    (leaving,) = operator.redrive(url, session, [asked["request_id"]], WHY, dry_run=False)
    return leaving.obstacle or "redriven"


def declare_restored(url: str, session: votes.Session, _asked: dict[str, Any]) -> str:
    """Say that the store was restored."""
    return f"epoch {restores.declare_restored(url, session, WHY)}"


Command = Callable[[str, votes.Session, dict[str, Any]], str]
COMMANDS: dict[Command, tuple[Callable[[Shop], None], Duty, str]] = {
    vote: (as_awaiting_approval, Duty.REVIEWER, "released"),
    cancel: (as_executing, Duty.OPERATOR, "cancelled"),
    redrive: (as_dead_lettered, Duty.OPERATOR, "redriven"),
    declare_restored: (as_executing, Duty.OPERATOR, "epoch 1"),
}
"""Each with the situation it is for, the login it uses, and what it answers."""

SAID_AGAIN: dict[Command, str] = {
    cancel: "cancelled",
    redrive: "it is received",
    declare_restored: "epoch 2",  # everything is looked up once more, which changes nothing
}
"""What a command answers that went through before; a vote is refused."""


def prepared(shop: Shop, desk: Desk, command: Command) -> tuple[votes.Session, dict[str, Any]]:
    """The situation, who decides, and on what."""
    COMMANDS[command][0](shop)
    if command is not vote:
        return desk.session, {"request_id": desk.id("one")}
    asked = shop.row("select id, proposal_hash, review_hash from approval_requests")
    shown = {"approval_id": asked.id, "proposal_hash": asked.proposal_hash, "review_hash": asked.review_hash}
    return desk.signed_in("lars", ["lead"]), shown


def start(command: Command, *arguments: object) -> BaseProcess:
    """The command in a process of its own."""
    process = multiprocessing.get_context("forkserver").Process(target=command, args=arguments, daemon=True)
    process.start()
    return process


def die_once_committed(command: Command, duty: Duty, url: str, session: votes.Session, asked: dict[str, Any]) -> None:
    """Carry it out and die when the server has acknowledged the commit, before anybody hears of it."""

    @sa.event.listens_for(engine_for(duty, url), "commit")
    def commit_and_die(connection: sa.Connection) -> None:
        driver: Any = connection.connection.dbapi_connection
        driver.commit()
        os.kill(os.getpid(), signal.SIGKILL)

    command(url, session, asked)


def traces(shop: Shop) -> list[list[Any]]:
    """Everything that a decision writes."""
    tables = ("approval_votes", "approval_resolutions", "dead_letters", "epochs", "requests", "audit_heads", "claims")
    return [shop.rows(f"select * from {table} order by 1") for table in tables]


def decisions(shop: Shop) -> int:
    """How many decisions of people the ledger tells."""
    kinds = "('approval.vote', 'request.cancelled', 'operator.redriven', 'operator.restored')"
    found: int = shop.row(f"select count(*) as found from audit_events where type in {kinds}").found
    return found


def assert_carried_out_once(shop: Shop, command: Command) -> None:
    """Runs bring the request where the decision sends it, with one effect or none."""
    for _ in range(4):
        shop.run_again()
        shop.age_effects()
        shop.execute("update epochs set opened_at = opened_at - interval '1 h' where number > 0")
        if shop.states() == {"one": "awaiting_approval"}:
            shop.vote("one", by="rita")  # what is redriven is asked about anew
    assert shop.states() == {"one": "cancelled" if command is cancel else "completed"}
    assert len(shop.calls()) == len(shop.effects()) == (0 if command is cancel else 1)
    shop.assert_ledger_intact()


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.__name__)
def test_killed_before_its_commit_nothing_of_it_is_there(shop: Shop, desk: Desk, command: Command) -> None:
    """It had written all but its ledger event, for which it waited; decided again it goes through whole."""
    _, duty, answer = COMMANDS[command]
    session, asked = prepared(shop, desk, command)
    before, told = traces(shop), decisions(shop)
    with shop.connect() as connection:
        connection.execute(sa.text("lock table audit_heads in share row exclusive mode"))
        process = start(command, shop.url, session, asked)
        wait_for_lock(shop)
        kill(process)
    at_work = "application_name = :duty and datname = current_database() and state <> 'idle'"
    wait_until(lambda: not shop.rows(f"select from pg_stat_activity where {at_work}", duty=duty.value))
    assert traces(shop) == before
    assert command(shop.url, session, asked) == answer
    assert decisions(shop) == told + 1
    assert_carried_out_once(shop, command)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.__name__)
def test_killed_after_its_commit_all_of_it_is_there(shop: Shop, desk: Desk, command: Command) -> None:
    """Nobody heard the answer; said again it answers that, or does what is harmless."""
    _, duty, _ = COMMANDS[command]
    session, asked = prepared(shop, desk, command)
    told = decisions(shop)
    process = start(die_once_committed, command, duty, shop.url, session, asked)  # type: ignore[arg-type]
    process.join(30)
    assert process.exitcode == -signal.SIGKILL
    assert decisions(shop) == told + 1
    after = traces(shop)
    if command is vote:
        with pytest.raises(VoteRefused, match="already"):
            command(shop.url, session, asked)
    else:
        assert command(shop.url, session, asked) == SAID_AGAIN[command]
    if command is not declare_restored:
        assert traces(shop) == after
    assert_carried_out_once(shop, command)
