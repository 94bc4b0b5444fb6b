"""Time widens who may decide, by the database's clock alone, and each reminder and escalation is announced once."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import sqlalchemy as sa

from policies.errors import NotPermitted
from tests.approvals.asking import DIRECTOR, LEAD, Asking
from tests.store.requests import DAY

AFTER_AN_HOUR = {"after_seconds": 3600.0, "roles": [DIRECTOR]}
STEPS = [AFTER_AN_HOUR, {"after_seconds": 7200.0, "roles": ["board", "owner"]}]
DAY_LONG: dict[str, Any] = {"seconds": 86_400, "escalations": STEPS, "remind_after": 1800.0}


def due(asking: Asking) -> int:
    """For how many requests a run would be started to announce something."""
    with asking.superuser.engine.begin() as connection:
        statement = "select requests from due_batches where batch_key = :day and reason = 'notice_due'"
        return sum(connection.scalars(sa.text(statement), {"day": DAY}))


def test_an_escalation_lets_its_roles_in_exactly_when_its_time_comes(asking: Asking) -> None:
    """A second before it they are refused, at it they decide; no job has to run in between."""
    asked, director = asking.ask(**DAY_LONG), asking.person(DIRECTOR)
    asking.age(asked, 3598)
    with pytest.raises(NotPermitted):
        asking.vote(director, asked)
    asking.age(asked, 2)
    assert asking.vote(director, asked).outcome == "released"


def test_each_level_lets_in_its_own_roles_and_keeps_the_earlier_ones(asking: Asking) -> None:
    """The second level adds to the first; the roles asked first may decide all along."""
    asked = asking.ask(**DAY_LONG, quorum=4)
    asking.age(asked, 3600)
    with pytest.raises(NotPermitted):
        asking.vote(asking.person("owner"), asked)
    asking.age(asked, 3600)
    for role in ("owner", "board", DIRECTOR, LEAD):
        assert asking.vote(asking.person(role), asked).outcome == ("released" if role == LEAD else "open")


def test_an_escalation_does_not_let_in_who_is_excluded(asking: Asking) -> None:
    """Initiator and payee stay out, whatever role they reach."""
    initiator = asking.person(DIRECTOR)
    asked = asking.ask(**DAY_LONG, initiator=initiator, parties=["P-escalated"])
    asking.age(asked, 3700)
    for person in (
        initiator,
        asking.person(DIRECTOR, external_id="P-escalated"),
        asking.person(DIRECTOR, kind="service"),
    ):
        with pytest.raises(NotPermitted):
            asking.vote(person, asked)


def test_a_vote_by_an_escalated_role_counts_at_the_start(asking: Asking) -> None:
    """What let the vote in holds when it is recounted."""
    released = asking.worker.released(decision="review", expires_in=86_400)
    asking.worker.tamper(
        "approval_requests",
        f"""escalations = '[{{"after_seconds": 60, "roles": ["{DIRECTOR}"]}}]',"""
        " opened_at = opened_at - interval '1 h'",
        released,
    )
    assert released.approval_id is not None
    asking.worker.superuser.run(
        "update requests set lease_token = null, lease_until = null where id = :id", id=released.id
    )
    asking.worker.vote(asking.person(DIRECTOR), released.approval_id)
    until = "clock_timestamp() + interval '30 s'"
    asking.worker.change(
        released, f"lease_token = :t, lease_until = {until}, rechecked_until = {until}", t=released.token
    )
    assert asking.worker.refusal(released) is None


def test_reminder_and_escalation_are_announced_when_due_and_once(asking: Asking) -> None:
    """Each wakes a run when its time comes, stands in ledger and outbox, and is never told again."""
    asking.announce()
    asked = asking.ask(**DAY_LONG)
    assert (asking.announce(), due(asking)) == (0, 0)
    asking.age(asked, 1800)
    assert due(asking) == 1
    assert (asking.announce(), asking.announce()) == (1, 0)
    assert due(asking) == 0
    asking.age(asked, 1800)
    assert due(asking) == 1
    assert (asking.announce(), asking.announce()) == (1, 0)
    asking.age(asked, 7200)
    assert (asking.announce(), asking.announce()) == (1, 0)
    told = asking.outbox(asked)
    assert [(kind, told["level"], told["roles"]) for kind, told in told] == [
        ("approval.reminder", 0, [LEAD]),
        ("approval.escalated", 1, [DIRECTOR]),
        ("approval.escalated", 2, ["board", "owner"]),
    ]
    assert asking.events(asked) == [kind for kind, _ in told]
    asking.assert_ledgers_intact()


def test_nothing_is_announced_of_what_is_over(asking: Asking) -> None:
    """Expired, decided and cancelled ones are nobody's to be reminded of, and wake no run."""
    asking.announce()
    decided, expired = asking.ask(**DAY_LONG), asking.ask(**{**DAY_LONG, "seconds": 3600})
    asking.vote(asking.person(LEAD), decided, "deny")
    for asked in (decided, expired):
        asking.age(asked, 5000)
    assert (due(asking), asking.announce()) == (0, 0)
    asking.expire()


def test_concurrent_passes_announce_each_notice_once(asking: Asking) -> None:
    """Several runs on one batch at the same moment tell everybody exactly once."""
    asking.announce()
    waiting = [asking.ask(**DAY_LONG) for _ in range(20)]
    for asked in waiting:
        asking.age(asked, 4000)
    start = threading.Barrier(4)
    announced: list[int] = []

    def announce() -> None:
        start.wait()
        announced.append(asking.announce())

    threads = [threading.Thread(target=announce) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    announced.append(asking.announce())  # what a pass found locked by another one stays for the next
    assert sum(announced) == 40
    for asked in waiting:
        assert asking.events(asked) == ["approval.reminder", "approval.escalated"]
    asking.assert_ledgers_intact()
