"""Acts at the same moment, each on a connection of its own: one outcome, a clear error for the late, one story told."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

import pytest
import sqlalchemy as sa

from policies.errors import FailsafeError, NotAuthenticated, NotPermitted, NotPossibleNow, VoteRefused
from policies.states import Event, State
from resources.store.engine import Duty, engine_for, transaction
from resources.store.moves import Move, advance
from resources.store.operator import cancel
from resources.store.principals import disable_principal
from resources.store.votes import Vote
from tests.approvals.asking import DIRECTOR, LEAD, Asking
from tests.store.requests import AskedRequest, Person

TIMES = range(12)

_NAMES: dict[type[FailsafeError], str] = {
    NotPermitted: "not permitted",
    NotPossibleNow: "not possible",
    NotAuthenticated: "not authenticated",
}

Act = Callable[[], object]


def race(*acts: Act) -> list[str]:
    """What each act came to, all begun at one moment: its result, or the code of the refusal its caller was given."""
    start = threading.Barrier(len(acts))
    said = [""] * len(acts)

    def run(place: int, act: Act) -> None:
        start.wait()
        try:
            said[place] = str(act())
        except VoteRefused as refused:
            said[place] = refused.code if str(refused) else "without a word"
        except FailsafeError as refused:
            said[place] = _NAMES[type(refused)]

    threads = [threading.Thread(target=run, args=pair) for pair in enumerate(acts)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return said


@pytest.fixture
def race_of(asking: Asking) -> Iterator[Race]:
    """A race course; afterwards every chain of its store verifies."""
    yield Race(asking)
    asking.assert_ledgers_intact()


class Race:
    """Acts that race, with two leads who are signed in already."""

    def __init__(self, asking: Asking) -> None:
        self.asking = asking
        self.leads = [asking.person(LEAD) for _ in range(3)]
        for lead in self.leads:
            asking.session(lead)

    def vote(self, voter: int | Person, asked: AskedRequest, vote: Vote = "approve") -> Act:
        """One vote; what it came to."""
        person = self.leads[voter] if isinstance(voter, int) else voter
        return lambda: self.asking.vote(person, asked, vote).outcome

    def votes(self, asked: AskedRequest) -> int:
        """How many votes are stored."""
        count: Any = self.asking.superuser.value(
            "select count(*) from approval_votes where approval_id = :id", id=asked.approval_id
        )
        return int(count)

    def told(self, asked: AskedRequest) -> list[Any]:
        """The resolutions that the ledger tells, in its order."""
        return [payload.get("resolution") for kind, payload in self.asking.ledger(asked) if kind == "approval.vote"]


@pytest.mark.parametrize("_time", TIMES)
def test_two_approvers_where_one_is_enough(race_of: Race, _time: int) -> None:
    """One releases; the other is told that it is resolved, and is not counted."""
    asked = race_of.asking.ask()
    assert sorted(race(race_of.vote(0, asked), race_of.vote(1, asked))) == ["released", "resolved"]
    assert race_of.votes(asked) == 1
    assert race_of.told(asked) == ["released"]
    assert race_of.asking.state(asked) == "executing"


@pytest.mark.parametrize("_time", TIMES)
def test_three_approvers_where_two_are_needed(race_of: Race, _time: int) -> None:
    """The second one releases, whichever it is; no vote is lost and none counts twice."""
    asked = race_of.asking.ask(quorum=2)
    said = race(*(race_of.vote(number, asked) for number in range(3)))
    assert sorted(said) == ["open", "released", "resolved"]
    assert race_of.votes(asked) == 2
    assert race_of.told(asked) == [None, "released"]


@pytest.mark.parametrize("_time", TIMES)
def test_two_approvers_where_two_are_needed(race_of: Race, _time: int) -> None:
    """Each sees the other's vote: it cannot happen that both think they were the first."""
    asked = race_of.asking.ask(quorum=2)
    assert sorted(race(race_of.vote(0, asked), race_of.vote(1, asked))) == ["open", "released"]
    assert race_of.told(asked) == [None, "released"]


@pytest.mark.parametrize("quorum", [1, 2])
@pytest.mark.parametrize("_time", TIMES)
def test_one_approver_twice(race_of: Race, quorum: int, _time: int) -> None:
    """A double click is one vote; the second learns that it was, and never makes up the quorum."""
    asked = race_of.asking.ask(quorum=quorum)
    said = sorted(race(race_of.vote(0, asked), race_of.vote(0, asked)))
    assert said == (["released", "resolved"] if quorum == 1 else ["open", "voted"])
    assert race_of.votes(asked) == 1
    assert race_of.asking.state(asked) == ("executing" if quorum == 1 else "awaiting_approval")


@pytest.mark.parametrize("_time", TIMES)
def test_lender_and_borrower(race_of: Race, _time: int) -> None:
    """One voice at one moment stays one."""
    borrower = race_of.asking.person("clerk")
    race_of.asking.lend(race_of.leads[0], borrower)
    race_of.asking.session(borrower)
    asked = race_of.asking.ask(quorum=2)
    assert sorted(race(race_of.vote(0, asked), race_of.vote(borrower, asked))) == ["open", "voted"]
    assert race_of.asking.state(asked) == "awaiting_approval"


@pytest.mark.parametrize("_time", TIMES)
def test_approve_against_deny_where_one_decides(race_of: Race, _time: int) -> None:
    """Whoever came first decided; the state and the ledger say the same."""
    asked = race_of.asking.ask()
    approved, denied = race(race_of.vote(0, asked), race_of.vote(1, asked, "deny"))
    assert (approved, denied) in {("released", "resolved"), ("resolved", "denied")}
    outcome = "released" if approved == "released" else "denied"
    assert race_of.asking.outcome(asked) == outcome
    assert race_of.told(asked) == [outcome]
    assert race_of.asking.state(asked) == ("executing" if outcome == "released" else "rejected")


@pytest.mark.parametrize("_time", TIMES)
def test_approve_against_deny_where_two_are_needed(race_of: Race, _time: int) -> None:
    """The denial wins in either order."""
    asked = race_of.asking.ask(quorum=2)
    approved, denied = race(race_of.vote(0, asked), race_of.vote(1, asked, "deny"))
    assert denied == "denied"
    assert approved in {"open", "resolved"}
    assert race_of.asking.state(asked) == "rejected"
    assert race_of.votes(asked) == (2 if approved == "open" else 1)


@pytest.mark.parametrize("vote", ["approve", "deny"])
@pytest.mark.parametrize("milliseconds", [-3, -1, 0, 1, 3])
@pytest.mark.parametrize("_time", range(3))
def test_a_vote_around_the_expiry(race_of: Race, milliseconds: int, vote: Vote, _time: int) -> None:
    """A vote and an expiry at the same millisecond: cast in time and it counts, or expired and it does not."""
    asked = race_of.asking.ask(seconds=0.25)
    expires: Any = race_of.asking.superuser.value(
        "select expires_at from approval_requests where id = :id", id=asked.approval_id
    )
    at = expires.timestamp() + milliseconds / 1000

    def when_it_is_time(act: Act) -> Act:
        def waiting() -> object:
            while time.time() < at:
                pass
            return act()

        return waiting

    voted, _, _ = race(
        when_it_is_time(race_of.vote(0, asked, vote)),
        when_it_is_time(race_of.asking.expire),
        when_it_is_time(race_of.asking.expire),
    )
    while datetime.now(expires.tzinfo) <= expires:
        time.sleep(0.001)
    race_of.asking.expire()
    if voted == "expired":
        assert race_of.asking.outcome(asked) == "expired"
        assert race_of.asking.events(asked) == ["approval.expired"]
        assert race_of.votes(asked) == 0
        assert race_of.asking.state(asked) == "expired"
    else:
        assert voted == race_of.asking.outcome(asked) == ("released" if vote == "approve" else "denied")
        assert race_of.asking.events(asked) == ["approval.vote"]
        cast: Any = race_of.asking.superuser.value(
            "select cast_at from approval_votes where approval_id = :id", id=asked.approval_id
        )
        assert cast < expires


@pytest.mark.parametrize("vote", ["approve", "deny"])
@pytest.mark.parametrize("_time", TIMES)
def test_a_vote_against_a_cancellation(race_of: Race, vote: Vote, _time: int) -> None:
    """Cancelled first: no vote. Released first: cancelled all the same, before any effect. Denied first: over."""
    asked = race_of.asking.ask()
    operator = race_of.asking.session(race_of.asking.person("operator"))
    voted, cancelled = race(
        race_of.vote(0, asked, vote), lambda: cancel(race_of.asking.url, operator, asked.id, "not wanted")
    )
    kinds = race_of.asking.events(asked)
    if voted == "resolved":
        assert (cancelled, kinds, race_of.asking.outcome(asked)) == ("cancelled", ["request.cancelled"], "cancelled")
    elif vote == "approve":
        assert (voted, cancelled, kinds) == ("released", "cancelled", ["approval.vote", "request.cancelled"])
    else:
        assert (voted, cancelled, kinds) == ("denied", "not possible", ["approval.vote"])
    assert race_of.asking.state(asked) == ("rejected" if voted == "denied" else "cancelled")


@pytest.mark.parametrize("_time", TIMES)
def test_a_vote_against_an_edit(race_of: Race, _time: int) -> None:
    """What was approved is not edited, and what was edited is not approved."""
    asked = race_of.asking.ask()
    voted, edited = race(race_of.vote(0, asked), lambda: race_of.asking.edit(race_of.leads[1], asked))
    assert (voted, edited) in {("released", "resolved"), ("resolved", "2")}
    won = edited == "2"
    assert race_of.asking.outcome(asked) == ("voided" if won else "released")
    assert race_of.asking.events(asked) == ["proposal.edited" if won else "approval.vote"]
    assert race_of.asking.state(asked) == ("proposal_ready" if won else "executing")


@pytest.mark.parametrize("_time", TIMES)
def test_two_edits(race_of: Race, _time: int) -> None:
    """One becomes the next revision; the other editor is told to look again."""
    asked = race_of.asking.ask()
    said = race(*(lambda lead=lead: race_of.asking.edit(lead, asked) for lead in race_of.leads[:2]))
    assert sorted(said) == ["2", "resolved"]
    assert race_of.asking.events(asked) == ["proposal.edited"]


@pytest.mark.parametrize("_time", TIMES)
def test_a_vote_against_a_new_round(race_of: Race, _time: int) -> None:
    """A worker sends it back as stale at the moment of the vote: one of them finds it gone."""
    asked = race_of.asking.ask()

    def send_back() -> int:
        move = Move(asked.id, State.AWAITING_APPROVAL, Event.APPROVAL_STALE, "stricter now", new_round=True)
        with transaction(engine_for(Duty.WORKER, race_of.asking.url)) as connection:
            return len(advance(connection, [move]))

    voted, moved = race(race_of.vote(0, asked), send_back)
    assert (voted, moved) in {("released", "0"), ("resolved", "1")}
    assert race_of.asking.outcome(asked) == ("voided" if moved == "1" else "released")
    assert race_of.votes(asked) == (0 if moved == "1" else 1)


@pytest.mark.parametrize("_time", TIMES)
def test_an_escalation_against_votes(race_of: Race, _time: int) -> None:
    """It is announced at most once, never after the decision, and whoever votes first decides."""
    asked = race_of.asking.ask(seconds=86_400, escalations=[{"after_seconds": 60.0, "roles": [DIRECTOR]}])
    director = race_of.asking.person(DIRECTOR)
    race_of.asking.session(director)
    race_of.asking.age(asked, 61)
    said = race(race_of.vote(0, asked), race_of.vote(director, asked), race_of.asking.announce, race_of.asking.announce)
    assert sorted(said[:2]) == ["released", "resolved"]
    race_of.asking.announce()
    assert race_of.asking.events(asked) in (["approval.vote"], ["approval.escalated", "approval.vote"])


@pytest.mark.parametrize("milliseconds", [-1, 0, 1])
@pytest.mark.parametrize("_time", range(3))
def test_a_vote_around_the_escalation(race_of: Race, milliseconds: int, _time: int) -> None:
    """At its millisecond a director is refused or decides, and nothing in between."""
    asked = race_of.asking.ask(seconds=600, escalations=[{"after_seconds": 60.0, "roles": [DIRECTOR]}])
    director = race_of.asking.person(DIRECTOR)
    race_of.asking.session(director)
    race_of.asking.age(asked, 59.75)
    opened: Any = race_of.asking.superuser.value(
        "select opened_at from approval_requests where id = :id", id=asked.approval_id
    )
    while time.time() < opened.timestamp() + 60 + milliseconds / 1000:
        pass
    voted, _ = race(race_of.vote(director, asked), race_of.asking.announce)
    assert voted in {"not permitted", "released"}
    assert race_of.votes(asked) == (1 if voted == "released" else 0)
    if voted == "not permitted":
        time.sleep(0.002)
        assert race_of.vote(director, asked)() == "released"


@pytest.mark.parametrize("_time", TIMES)
def test_a_vote_by_a_loan_against_taking_it_back(race_of: Race, _time: int) -> None:
    """Refused, or cast and worth nothing from then on."""
    borrower = race_of.asking.person("clerk")
    loan = race_of.asking.lend(race_of.leads[0], borrower)
    race_of.asking.session(borrower)
    asked = race_of.asking.ask()
    voted, taken = race(race_of.vote(borrower, asked), lambda: race_of.asking.take_back(race_of.leads[0], loan))
    assert (voted in {"released", "not permitted"}, taken) == (True, "True")
    assert (
        race_of.asking.superuser.value(
            "select approving(a) from approval_requests a where a.id = :id", id=asked.approval_id
        )
        == []
    )


@pytest.mark.parametrize("vote", ["approve", "deny"])
@pytest.mark.parametrize("_time", TIMES)
def test_a_vote_against_disabling_the_voter(race_of: Race, vote: Vote, _time: int) -> None:
    """Either the vote came first, or there is no such session any more."""
    voter = race_of.asking.person(LEAD)
    race_of.asking.session(voter)
    asked = race_of.asking.ask()
    voted, disabled = race(
        race_of.vote(voter, asked, vote), lambda: disable_principal(race_of.asking.operator, voter.name)
    )
    assert disabled == "True"
    assert voted in {"released", "denied", "not authenticated"}
    assert race_of.votes(asked) == (0 if voted == "not authenticated" else 1)


@pytest.mark.parametrize("vote", ["approve", "deny"])
def test_a_voter_disabled_while_waiting_for_the_row_does_not_vote(race_of: Race, vote: Vote) -> None:
    """The person is looked at again once the request is locked, not only when the call began."""
    voter = race_of.asking.person(LEAD)
    race_of.asking.session(voter)
    asked = race_of.asking.ask()
    with race_of.asking.superuser.engine.begin() as connection:
        connection.execute(sa.text("select from requests where id = :id for update"), {"id": asked.id})

        def disable_then_let_go() -> bool:
            time.sleep(0.3)
            done = disable_principal(race_of.asking.operator, voter.name)
            connection.commit()
            return done

        voted, _ = race(race_of.vote(voter, asked, vote), disable_then_let_go)
    assert voted == "not authenticated"
    assert race_of.votes(asked) == 0
