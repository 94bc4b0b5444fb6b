"""A vote counts once, from the right person, on exactly what was shown, while there is time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import text

from policies.errors import FailsafeError, NotAuthenticated, NotPermitted, RequestRefused, VoteRefused
from resources.store.principals import disable_principal, set_roles
from resources.store.votes import Session, Tally, cast_vote, sign_in
from tests.postgres import Database
from tests.store.requests import AskedRequest, Person, Superuser


class Desk:
    """Votes as a reviewer's process does: logged in as the reviewer role, with the voter's own session."""

    def __init__(self, database: Database) -> None:
        self.url = database.url("failsafe_reviewer")

    def vote(self, voter: Person | Session, asked: AskedRequest, vote: str = "approve", **changed: Any) -> Tally:
        """Cast a vote on what was asked, but for what is `changed`."""
        session = sign_in(self.url, voter.token) if isinstance(voter, Person) else voter
        arguments: dict[str, Any] = {
            "approval_id": asked.approval_id,
            "vote": vote,
            "proposal_hash": asked.proposal_hash,
            "review_hash": asked.review_hash,
            **changed,
        }
        return cast_vote(self.url, session, **arguments)


@pytest.fixture
def desk(database: Database) -> Desk:
    """The reviewer's desk."""
    return Desk(database)


@pytest.fixture
def clerk(superuser: Superuser) -> Person:
    """Who submits."""
    return superuser.person("clerk", ["support_lead"])


@pytest.fixture
def lead(superuser: Superuser) -> Person:
    """Who may decide."""
    return superuser.person("lead", ["support_lead"], external_id="E1")


def assert_open(superuser: Superuser, asked: AskedRequest) -> None:
    """Nothing was decided, counted or recorded."""
    assert superuser.state(asked.id) == "awaiting_approval"
    assert superuser.value("select count(*) from approval_votes") == 0
    assert superuser.value("select count(*) from approval_resolutions") == 0
    assert superuser.value("select count(*) from audit_events where type = 'approval.vote'") == 0


def test_an_approval_releases_the_request(superuser: Superuser, desk: Desk, clerk: Person, lead: Person) -> None:
    """One vote where one is needed releases, moves the request on and stands in its ledger."""
    asked = superuser.asked(clerk)
    assert desk.vote(lead, asked, reason="checked with the customer") == Tally("released", 1, 1)
    assert superuser.state(asked.id) == "executing"
    told = superuser.value("select convert_from(payload, 'UTF8') from audit_events where type = 'approval.vote'")
    assert "checked with the customer" in str(told)
    assert asked.review_hash.hex() in str(told)


def test_a_denial_rejects_and_frees_the_claims(superuser: Superuser, desk: Desk, clerk: Person, lead: Person) -> None:
    """One denial rejects, whatever the quorum, and another request may make the claim."""
    asked = superuser.asked(clerk, quorum=2)
    superuser.run("insert into claims values ('refunds', 'order', sha256('1'), :id)", id=asked.id)
    assert desk.vote(lead, asked, "deny").outcome == "denied"
    assert superuser.state(asked.id) == "rejected"
    assert superuser.value("select count(*) from claims") == 0


def test_a_quorum_counts_distinct_people(superuser: Superuser, desk: Desk, clerk: Person, lead: Person) -> None:
    """Two are needed: the first vote leaves it open, a second person's releases it."""
    asked = superuser.asked(clerk, quorum=2)
    assert desk.vote(lead, asked) == Tally("open", 1, 2)
    assert superuser.state(asked.id) == "awaiting_approval"
    other = superuser.person("other", ["support_lead"])
    assert desk.vote(other, asked) == Tally("released", 2, 2)


def test_votes_of_people_who_lost_the_right_no_longer_count(
    database: Database, superuser: Superuser, desk: Desk, clerk: Person, lead: Person
) -> None:
    """A vote is recounted by what its voter may do now: without the role, or disabled, it is none."""
    asked = superuser.asked(clerk, quorum=2)
    desk.vote(lead, asked)
    set_roles(database.url("failsafe_operator"), "lead", ["clerk"])
    assert desk.vote(superuser.person("second", ["support_lead"]), asked) == Tally("open", 1, 2)
    disable_principal(database.url("failsafe_operator"), "second")
    assert desk.vote(superuser.person("third", ["support_lead"]), asked) == Tally("open", 1, 2)


@pytest.mark.parametrize("vote", ["approve", "deny"])
@pytest.mark.parametrize("who", ["initiator", "subject", "party", "party by name", "without role", "service"])
def test_who_may_not_vote(superuser: Superuser, desk: Desk, clerk: Person, who: str, vote: str) -> None:
    """Initiator, subject and payee, people without the role and services decide nothing, neither way."""
    asked = superuser.asked(clerk, subject="S1", parties=["P1", "pays herself"])
    voters: dict[str, Callable[[], Person]] = {
        "initiator": lambda: clerk,
        "subject": lambda: superuser.person("subject", ["support_lead"], external_id="S1"),
        "party": lambda: superuser.person("payee", ["support_lead"], external_id="P1"),
        "party by name": lambda: superuser.person("pays herself", ["support_lead"]),
        "without role": lambda: superuser.person("colleague", ["clerk"]),
        "service": lambda: superuser.person("robot", ["support_lead"], kind="service"),
    }
    with pytest.raises(NotPermitted):
        desk.vote(voters[who](), asked, vote)
    assert_open(superuser, asked)


@pytest.mark.parametrize("changed", [{"proposal_hash": bytes(32)}, {"review_hash": bytes(32)}, {"review_hash": None}])
def test_a_vote_on_something_else_is_refused(
    superuser: Superuser, desk: Desk, clerk: Person, lead: Person, changed: dict[str, Any]
) -> None:
    """A vote names the proposal and the document that were shown; with another hash it is not counted."""
    asked = superuser.asked(clerk)
    with pytest.raises(VoteRefused) as refused:
        desk.vote(lead, asked, **changed)
    assert refused.value.code == "changed"
    assert_open(superuser, asked)


def test_a_vote_after_the_expiry_is_refused(superuser: Superuser, desk: Desk, clerk: Person, lead: Person) -> None:
    """Time is the database's: a second after the expiry neither approval nor denial counts."""
    asked = superuser.asked(clerk, seconds=0.05)
    superuser.run("select pg_sleep(0.1)")
    for vote in ("approve", "deny"):
        with pytest.raises(VoteRefused) as refused:
            desk.vote(lead, asked, vote)
        assert refused.value.code == "expired"
    assert_open(superuser, asked)


def test_a_vote_that_waited_past_the_expiry_is_late(
    superuser: Superuser, desk: Desk, clerk: Person, lead: Person
) -> None:
    """The clock is read once the row is locked: a vote cast in time that waited behind a lock is still late."""
    asked = superuser.asked(clerk, seconds=0.6)
    session = sign_in(desk.url, lead.token)
    late: list[str] = []

    def vote() -> None:
        try:
            desk.vote(session, asked)
        except VoteRefused as refused:
            late.append(refused.code)

    with superuser.engine.begin() as connection:
        connection.execute(text("select from requests where id = :id for update"), {"id": asked.id})
        waiting = threading.Thread(target=vote)
        waiting.start()
        connection.execute(text("select pg_sleep(0.8)"))
    waiting.join()
    assert late == ["expired"]
    assert_open(superuser, asked)


def test_nobody_votes_twice(superuser: Superuser, desk: Desk, clerk: Person, lead: Person) -> None:
    """A second vote of one person, the same or the opposite, is refused and changes no count."""
    asked = superuser.asked(clerk, quorum=2)
    desk.vote(lead, asked)
    for vote in ("approve", "deny"):
        with pytest.raises(VoteRefused) as refused:
            desk.vote(lead, asked, vote)
        assert refused.value.code == "voted"
    assert superuser.state(asked.id) == "awaiting_approval"


@pytest.mark.parametrize("first", ["approve", "deny"])
def test_no_vote_after_the_resolution(
    superuser: Superuser, desk: Desk, clerk: Person, lead: Person, first: str
) -> None:
    """Once released or denied, nobody's vote is taken."""
    asked = superuser.asked(clerk)
    desk.vote(lead, asked, first)
    ended = superuser.state(asked.id)
    for vote in ("approve", "deny"):
        with pytest.raises(VoteRefused) as refused:
            desk.vote(superuser.person(f"late {vote}", ["support_lead"]), asked, vote)
        assert refused.value.code == "resolved"
    assert superuser.state(asked.id) == ended


def test_no_vote_on_an_approval_that_stands_no_more(
    superuser: Superuser, desk: Desk, clerk: Person, lead: Person
) -> None:
    """When the request went on to a new round, what was asked before takes no votes."""
    asked = superuser.asked(clerk)
    superuser.run("update requests set round = 2, approval_id = null where id = :id", id=asked.id)
    with pytest.raises(VoteRefused) as refused:
        desk.vote(lead, asked)
    assert refused.value.code == "resolved"
    assert superuser.value("select outcome from approvals_v") == "voided"


def test_a_session_cannot_be_forged(superuser: Superuser, desk: Desk, clerk: Person, lead: Person) -> None:
    """A made-up secret, the token itself in its place, or nothing at all is no session."""
    asked = superuser.asked(clerk)
    session = sign_in(desk.url, lead.token)
    for secret in ("fss_" + "0" * 64, lead.token, session.secret[:-1], "", None):
        forged = Session(secret, session.principal_id, session.name, session.roles, session.expires_at)  # type: ignore[arg-type]
        with pytest.raises(NotAuthenticated):
            desk.vote(forged, asked)
    assert_open(superuser, asked)


def test_a_session_ends_with_its_time(superuser: Superuser, desk: Desk, clerk: Person, lead: Person) -> None:
    """An expired session votes no more."""
    asked = superuser.asked(clerk)
    session = sign_in(desk.url, lead.token)
    superuser.run("update sessions set created_at = now() - interval '9 hours', expires_at = now() - interval '1 hour'")
    with pytest.raises(NotAuthenticated):
        desk.vote(session, asked)
    assert_open(superuser, asked)


def test_a_disabled_principal_neither_signs_in_nor_votes(
    database: Database, superuser: Superuser, desk: Desk, clerk: Person, lead: Person
) -> None:
    """Disabling ends the token and the sessions that exist."""
    asked = superuser.asked(clerk)
    session = sign_in(desk.url, lead.token)
    assert disable_principal(database.url("failsafe_operator"), "lead")
    with pytest.raises(NotAuthenticated):
        desk.vote(session, asked)
    with pytest.raises(NotAuthenticated):
        sign_in(desk.url, lead.token)
    assert_open(superuser, asked)


def test_a_session_of_a_disabled_principal_is_none_even_if_it_were_left(
    superuser: Superuser, desk: Desk, clerk: Person, lead: Person
) -> None:
    """The vote looks at the principal itself, not only at the session."""
    asked = superuser.asked(clerk)
    session = sign_in(desk.url, lead.token)
    superuser.run("update principals set disabled_at = now() where name = 'lead'")
    with pytest.raises(NotAuthenticated):
        desk.vote(session, asked)
    assert_open(superuser, asked)


def test_a_vote_is_approve_or_deny(superuser: Superuser, desk: Desk, clerk: Person, lead: Person) -> None:
    """Any other word, an over-long reason or an unknown approval counts as nothing."""
    asked = superuser.asked(clerk)
    with pytest.raises(FailsafeError):
        desk.vote(lead, asked, "maybe")
    with pytest.raises(VoteRefused):
        desk.vote(lead, asked, reason="x" * 2001)
    with pytest.raises(RequestRefused):
        desk.vote(lead, asked, approval_id=asked.id)
    assert_open(superuser, asked)


def test_a_reason_may_hold_anything(superuser: Superuser, desk: Desk, clerk: Person, lead: Person) -> None:
    """A NUL or a lone surrogate pasted into a reason does not stop the vote."""
    asked = superuser.asked(clerk)
    assert desk.vote(lead, asked, reason="seen\x00\ud800").outcome == "released"


@pytest.mark.parametrize("votes", [("approve", "approve"), ("approve", "deny")])
def test_two_votes_at_once_resolve_once(
    superuser: Superuser, desk: Desk, clerk: Person, lead: Person, votes: tuple[str, str]
) -> None:
    """Where one vote decides and two arrive together, one is counted and the other is told that it came too late."""
    other = superuser.person("other", ["support_lead"])
    for round_number in range(8):
        asked = superuser.asked(clerk, f"order-{round_number}")
        sessions = [sign_in(desk.url, person.token) for person in (lead, other)]
        start = threading.Barrier(2)
        outcomes: list[str] = []

        def cast(
            session: Session, vote: str, asked: AskedRequest = asked, start: threading.Barrier = start,
            outcomes: list[str] = outcomes,
        ) -> None:  # fmt: skip
            start.wait()
            try:
                outcomes.append(desk.vote(session, asked, vote).outcome)
            except VoteRefused as refused:
                outcomes.append(refused.code)

        threads = [threading.Thread(target=cast, args=pair) for pair in zip(sessions, votes, strict=True)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert "resolved" in outcomes
        assert len(outcomes) == 2
        assert set(outcomes) & {"released", "denied"}
        assert superuser.value("select count(*) from approval_votes where approval_id = :id", id=asked.approval_id) == 1
        assert superuser.value("select state_seq from requests where id = :id", id=asked.id) == 4
