"""A lent role lets somebody decide in the lender's place: never further, never longer, never around an exclusion."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa

from policies.errors import NotAuthenticated, NotPermitted, NotPossibleNow, RequestRefused, VoteRefused
from resources.store.delegations import delegate, delegations
from resources.store.principals import disable_principal, set_limits, set_roles
from resources.store.votes import Tally
from tests.approvals.asking import LEAD, Asking
from tests.store.requests import Person


def soon() -> datetime:
    """In an hour."""
    return datetime.now(UTC) + timedelta(hours=1)


@pytest.fixture
def lead(asking: Asking) -> Person:
    """Who holds the role."""
    return asking.person(LEAD)


@pytest.fixture
def deputy(asking: Asking) -> Person:
    """Who does not."""
    return asking.person("clerk")


def test_a_borrower_decides_in_the_lenders_place(asking: Asking, lead: Person, deputy: Person) -> None:
    """Without the loan refused, with it counted, and the ledger says in whose place."""
    asked = asking.ask()
    with pytest.raises(NotPermitted):
        asking.vote(deputy, asked)
    asking.lend(lead, deputy)
    assert asking.vote(deputy, asked).outcome == "released"
    [(kind, told)] = asking.ledger(asked)
    assert (kind, told["in_place_of"]) == ("approval.vote", str(lead.id))


def test_a_role_is_lent_to_somebody_once_at_a_time(asking: Asking, lead: Person, deputy: Person) -> None:
    """Taken back, it may be lent anew."""
    loan = asking.lend(lead, deputy)
    with pytest.raises(NotPossibleNow, match="take that back first"):
        asking.lend(lead, deputy)
    assert asking.take_back(lead, loan)
    asking.lend(lead, deputy)


def test_two_who_lend_each_other_at_once_do_not_block_each_other(asking: Asking, lead: Person) -> None:
    """Both loans are made."""
    other = asking.person(LEAD)
    with asking.superuser.engine.connect() as holder, ThreadPoolExecutor(2) as pool:
        holder.execute(sa.text("lock table role_grants in share mode"))
        loans = [pool.submit(asking.lend, *pair) for pair in ((lead, other), (other, lead))]
        waiting = sa.text("select count(*) from pg_locks where not granted and relation = 'role_grants'::regclass")
        while holder.execute(waiting).scalar_one() < 2:
            time.sleep(0.02)
        holder.rollback()
        assert len({loan.result() for loan in loans}) == 2


def test_a_loan_holds_for_its_time_only(asking: Asking, lead: Person, deputy: Person) -> None:
    """Not before it begins, not after it ends, by the database's clock."""
    asked = asking.ask()
    loan = asking.lend(lead, deputy, starts_in=1)
    with pytest.raises(NotPermitted):
        asking.vote(deputy, asked)
    move = (
        "update role_grants set starts_at = starts_at - interval '{0}', ends_at = ends_at - interval '{0}'"
        " where id = :id"
    )
    asking.superuser.run(move.format("2 hours 1 second"), id=loan)
    with pytest.raises(NotPermitted):
        asking.vote(deputy, asked)
    asking.superuser.run(move.format("-30 minutes"), id=loan)
    assert asking.vote(deputy, asked).outcome == "released"


def test_a_loan_that_was_taken_back_is_none(asking: Asking, lead: Person, deputy: Person) -> None:
    """By its lender or an operator; by nobody else, and once."""
    asked = asking.ask()
    loan = asking.lend(lead, deputy)
    assert not asking.take_back(deputy, loan)
    assert not asking.take_back(asking.person(LEAD), loan)
    assert asking.take_back(lead, loan)
    assert not asking.take_back(lead, loan)
    with pytest.raises(NotPermitted):
        asking.vote(deputy, asked)
    again = asking.lend(lead, deputy)
    assert asking.take_back(asking.person("operator"), again)


def test_only_a_role_of_ones_own_is_lent(asking: Asking, lead: Person, deputy: Person) -> None:
    """Not one that nobody gave, not one that was borrowed, not by a service."""
    third = asking.person("clerk")
    with pytest.raises(NotPermitted, match="does not hold"):
        asking.lend(deputy, third)
    asking.lend(lead, deputy)
    with pytest.raises(NotPermitted, match="does not hold"):
        asking.lend(deputy, third)
    with pytest.raises(NotPermitted, match="does not hold"):
        asking.lend(asking.person(LEAD, kind="service"), third)


def test_a_role_is_lent_to_another_enabled_person_only(asking: Asking, lead: Person, deputy: Person) -> None:
    """Not to oneself, a service, somebody disabled or unknown."""
    gone = asking.person("clerk")
    disable_principal(asking.operator, gone.name)
    unknown = Person(gone.id, "nobody of this name", "")
    for to in (lead, asking.person("clerk", kind="service"), gone, unknown):
        with pytest.raises(RequestRefused, match="another enabled person"):
            asking.lend(lead, to)
    assert asking.vote(lead, asking.ask()).outcome == "released"


@pytest.mark.parametrize(("hours", "starts_in"), [(0, 0), (-1, 0), (1, -2), (24 * 91, 0)])
def test_a_loan_ends_and_ends_in_time(
    asking: Asking, lead: Person, deputy: Person, hours: float, starts_in: float
) -> None:
    """It lasts for some time that is not over and at most 90 days."""
    with pytest.raises(RequestRefused, match="at most 90 days"):
        asking.lend(lead, deputy, hours=hours, starts_in=starts_in)


def test_a_time_without_zone_is_refused(asking: Asking, lead: Person, deputy: Person) -> None:
    """It would be another instant on another machine."""
    naive = datetime(2026, 12, 1, 18)  # noqa: DTZ001 # what is refused
    for times in ({"until": naive}, {"until": soon(), "starting": naive}):
        with pytest.raises(RequestRefused, match="no time zone"):
            delegate(asking.reviewer, asking.session(lead), LEAD, deputy.name, reason="leave", **times)


def test_a_loan_without_reason_is_refused(asking: Asking, lead: Person, deputy: Person) -> None:
    """It stands in the ledger, where somebody will ask why."""
    with pytest.raises(RequestRefused, match="reason"):
        delegate(asking.reviewer, asking.session(lead), LEAD, deputy.name, until=soon(), reason=" ")


def test_who_is_excluded_cannot_lend_around_it(asking: Asking, deputy: Person) -> None:
    """The initiator's, the subject's and the payee's role decide nothing in other hands either."""
    initiator = asking.person(LEAD)
    subject, payee = asking.person(LEAD, external_id="S-lends"), asking.person(LEAD, external_id="P-lends")
    asked = asking.ask(initiator=initiator, subject="S-lends", parties=["P-lends"])
    for lender in (initiator, subject, payee):
        asking.lend(lender, deputy)
    for vote in ("approve", "deny"):
        with pytest.raises(NotPermitted):
            asking.vote(deputy, asked, vote)
    asking.lend(asking.person(LEAD), deputy)
    assert asking.vote(deputy, asked).outcome == "released"


def test_who_is_excluded_gains_nothing_by_a_loan(asking: Asking, lead: Person) -> None:
    """A borrowed role does not make initiator, subject or payee eligible."""
    initiator = asking.person("clerk")
    subject, payee = asking.person("clerk", external_id="S-borrows"), asking.person("clerk", external_id="P-borrows")
    asked = asking.ask(initiator=initiator, subject="S-borrows", parties=["P-borrows"])
    for borrower in (initiator, subject, payee):
        asking.lend(lead, borrower)
        with pytest.raises(NotPermitted):
            asking.vote(borrower, asked)


def test_lender_and_borrowers_are_one_voice(asking: Asking, lead: Person, deputy: Person) -> None:
    """Nobody makes up a quorum by lending: the lender's own vote, or a second borrower's, is refused and says why."""
    second = asking.person("clerk")
    for borrower in (deputy, second):
        asking.lend(lead, borrower)
    asked = asking.ask(quorum=2)
    assert asking.vote(deputy, asked).outcome == "open"
    for other in (lead, second):
        with pytest.raises(VoteRefused, match=f"{deputy.name} approved already in the same place") as refused:
            asking.vote(other, asked)
        assert refused.value.code == "voted"
    assert asking.vote(asking.person(LEAD), asked).outcome == "released"


def test_whoever_shares_a_voice_may_still_deny(asking: Asking, lead: Person, deputy: Person) -> None:
    """A denial wins, and nobody's approval can stand in its way."""
    asked = asking.ask(quorum=2)
    asking.lend(lead, deputy)
    asking.vote(deputy, asked)
    assert asking.vote(lead, asked, "deny").outcome == "denied"


def test_a_borrower_of_two_speaks_for_the_one_not_heard_yet(asking: Asking, lead: Person, deputy: Person) -> None:
    """Two lenders are two voices, of which one person casts one."""
    other = asking.person(LEAD)
    for lender in (lead, other):
        asking.lend(lender, deputy)
    asked = asking.ask(quorum=2)
    asking.vote(lead, asked)
    assert asking.vote(deputy, asked).outcome == "released"
    assert asking.ledger(asked)[-1][1]["in_place_of"] == str(other.id)


def test_a_lender_is_heard_once_the_loan_that_spoke_is_over(asking: Asking, lead: Person, deputy: Person) -> None:
    """A vote that counts no longer blocks nobody, and does not come back beside its lender's own."""
    asked = asking.ask(quorum=2)
    loan = asking.lend(lead, deputy)
    asking.vote(deputy, asked)
    asking.take_back(lead, loan)
    assert asking.vote(lead, asked) == Tally("open", 1, 2)
    asking.lend(lead, deputy)
    assert asking.vote(asking.person(LEAD), asked) == Tally("released", 2, 2)


def test_a_loan_reaches_no_further_than_its_lender(asking: Asking, lead: Person, deputy: Person) -> None:
    """The lender's limits bind the borrower, who has none of their own."""
    set_limits(asking.operator, lead.name, {"order.refund": {"EUR": 5_000}})
    asking.lend(lead, deputy)
    over = asking.ask(amounts=[{"action_type": "order.refund", "currency": "EUR", "minor": 6_000}])
    with pytest.raises(NotPermitted):
        asking.vote(deputy, over)
    within = asking.ask(amounts=[{"action_type": "order.refund", "currency": "EUR", "minor": 5_000}])
    assert asking.vote(deputy, within).outcome == "released"


@pytest.mark.parametrize("what", ["taken back", "ended", "lender disabled", "lender without role", "borrower disabled"])
def test_a_vote_by_a_loan_is_recounted_at_the_start(asking: Asking, what: str) -> None:
    """Whatever ended the loan between vote and start, the vote counts no longer, and nothing starts."""
    lender, borrower = asking.person("lead"), asking.person("clerk")
    loan = asking.lend(lender, borrower, "lead")
    released = asking.worker.released(decision="review", voters=[borrower])
    if what == "taken back":
        asking.take_back(lender, loan)
    elif what == "ended":
        asking.superuser.run("update role_grants set ends_at = clock_timestamp() where id = :id", id=loan)
    elif what == "lender without role":
        set_roles(asking.operator, lender.name, ["clerk"])
    else:
        disable_principal(asking.operator, (lender if what == "lender disabled" else borrower).name)
    assert asking.worker.refusal(released) == "too_few_votes"
    assert asking.worker.untouched(released)


def test_a_vote_by_a_loan_that_holds_starts(asking: Asking) -> None:
    """Counted at the vote, counted at the start."""
    lender, borrower = asking.person("lead"), asking.person("clerk")
    asking.lend(lender, borrower, "lead")
    assert asking.worker.refusal(asking.worker.released(decision="review", voters=[borrower])) is None


def test_a_borrower_whose_own_role_came_and_went_does_not_count_by_the_loan(asking: Asking) -> None:
    """A vote on one's own authority is not carried on by a role that was lent later."""
    lender, voter = asking.person("lead"), asking.person("lead")
    released = asking.worker.released(decision="review", voters=[voter])
    set_roles(asking.operator, voter.name, ["clerk"])
    asking.lend(lender, voter, "lead")
    assert asking.worker.refusal(released) == "too_few_votes"


def test_a_new_person_of_an_old_name_inherits_nothing(asking: Asking, lead: Person, deputy: Person) -> None:
    """Roles, loans and votes belong to a person, not to what they are called."""
    asked = asking.ask(quorum=2)
    asking.lend(lead, deputy)
    asking.vote(deputy, asked)
    disable_principal(asking.operator, deputy.name)
    asking.superuser.run("update principals set name = name || ' (gone)' where id = :id", id=deputy.id)
    namesake = asking.superuser.person(deputy.name, ["clerk"])
    with pytest.raises(NotPermitted):
        asking.vote(namesake, asked)
    assert asking.vote(asking.person(LEAD), asked) == Tally("open", 1, 2)


def test_loans_are_listed_to_those_they_concern(asking: Asking, lead: Person, deputy: Person) -> None:
    """Lender and borrower see theirs, an operator all, others nothing."""
    loan = asking.lend(lead, deputy)

    def seen(by: Person) -> list[bool]:
        return [one.in_force for one in delegations(asking.reviewer, asking.session(by)) if one.id == loan]

    operator = asking.person("operator")
    assert seen(lead) == seen(deputy) == seen(operator) == [True]
    assert seen(asking.person(LEAD)) == []
    disable_principal(asking.operator, lead.name)
    assert seen(operator) == [False]
    with pytest.raises(NotAuthenticated):
        asking.lend(lead, deputy)


def test_loans_stand_in_the_ledger(asking: Asking, lead: Person, deputy: Person) -> None:
    """Who lent what to whom, for how long and why, and who took it back."""
    loan = asking.lend(lead, deputy)
    asking.take_back(lead, loan)
    with asking.superuser.engine.begin() as connection:
        told = connection.execute(
            sa.text("select type, actor from audit_v where stream = 'system' and payload like :id order by seq"),
            {"id": f"%{loan}%"},
        ).all()
    assert told == [("role.lent", f"principal:{lead.id}"), ("role.taken_back", f"principal:{lead.id}")]
