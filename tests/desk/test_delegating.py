"""Lending roles at the desk: for a time with its zone, once, and taken back at once."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime, timedelta

import httpx
import pytest
import sqlalchemy as sa

from console.desk.instants import zoned_instant
from policies.errors import RequestRefused
from tests.desk.conftest import Visitor
from tests.desk.sent import sent
from tests.store.requests import AskedRequest, Person, Superuser

HOSTILE = "<script>alert(1)</script>\u202e"
UNTIL = f"{datetime.now(UTC) + timedelta(days=3):%Y-%m-%dT%H:%M}"


@pytest.fixture
def deputy(superuser: Superuser) -> Person:
    """Who has no role of their own."""
    return superuser.person("deputy")


def lend(visitor: Visitor, **changed: str) -> httpx.Response:
    """Fill in the form and send it."""
    given = {"role": "support_lead", "to": "deputy", "until": UNTIL, "reason": "on leave", **changed}
    return visitor.post("/delegations", **sent(visitor.page("/delegations"), "/delegations", **given))


def loans(superuser: Superuser) -> object:
    """How many were ever made."""
    return superuser.value("select count(*) from role_grants")


def test_who_is_lent_a_role_decides_in_the_lenders_place(
    visitor: Visitor, superuser: Superuser, asked: AskedRequest, lead: Person, deputy: Person
) -> None:
    """From the form to the deputy's vote; both see the loan, a stranger does not."""
    visitor.sign_in(lead)
    went = lend(visitor)
    assert (went.status_code, went.headers["location"]) == (303, "/delegations")
    page = visitor.page("/delegations")
    assert "in force" in page
    assert f"{UNTIL.replace('T', ' ')}:00 UTC" in page
    visitor.sign_in(superuser.person("stranger", ["other"]))
    assert "Nobody lent a role" in visitor.page("/delegations")
    visitor.sign_in(deputy)
    assert "take back" not in visitor.page("/delegations")
    assert "You hold no role that you could lend" in visitor.page("/delegations")
    assert visitor.vote(asked, "approve").status_code == 303
    assert superuser.state(asked.id) == "executing"


@pytest.mark.parametrize("by", ["lead", "operator"])
def test_a_loan_is_taken_back_once(
    visitor: Visitor, superuser: Superuser, asked: AskedRequest, lead: Person, operator: Person, deputy: Person, by: str
) -> None:
    """By its lender or an operator, after a page that says what that means; a second click finds it done."""
    visitor.sign_in(lead)
    lend(visitor)
    visitor.sign_in(lead if by == "lead" else operator)
    loan = superuser.value("select id from role_grants")
    path = f"/delegations/{loan}/take-back"
    assert f'href="{path}"' in visitor.page("/delegations")
    page = visitor.page(path)
    assert "Votes that were cast by it count no longer" in page
    for _ in range(2):
        assert visitor.post(path, **sent(page, path)).status_code == 303
    assert superuser.value("select count(*) from audit_v where type = 'role.taken_back'") == 1
    assert "taken back" in visitor.page("/delegations")
    visitor.sign_in(deputy)
    refused = visitor.post(path)
    assert refused.status_code == 303  # it is over already, so there is nothing to refuse
    assert visitor.vote(asked, "approve").status_code == 403


def test_others_take_nothing_back(visitor: Visitor, superuser: Superuser, lead: Person, deputy: Person) -> None:
    """The borrower may not, and a stranger is told of no loan."""
    visitor.sign_in(lead)
    lend(visitor)
    path = f"/delegations/{superuser.value('select id from role_grants')}/take-back"
    for person, status in ((deputy, 409), (superuser.person("stranger", ["other"]), 422)):
        visitor.sign_in(person)
        assert visitor.post(path).status_code == status
    assert superuser.value("select count(*) from role_grants where revoked_at is null") == 1


def test_the_same_form_twice_is_one_loan(visitor: Visitor, superuser: Superuser, lead: Person, deputy: Person) -> None:
    """One after the other or at the same time; what differs is refused while the first lasts, and another after it."""
    visitor.sign_in(lead)
    given = {"role": "support_lead", "to": "deputy", "until": UNTIL, "reason": "on leave"}
    fields = sent(visitor.page("/delegations"), "/delegations", **given)
    answers: list[httpx.Response] = []
    clicks = [threading.Thread(target=lambda: answers.append(visitor.post("/delegations", **fields))) for _ in range(4)]
    with superuser.engine.begin() as meanwhile:
        # No loan gets in while the others look whether there is one.
        meanwhile.execute(sa.text("lock table role_grants in exclusive mode"))
        for one in clicks:
            one.start()
        time.sleep(1)
    for one in clicks:
        one.join()
    assert [answer.status_code for answer in answers] == [303] * 4
    assert lend(visitor).status_code == 303
    assert loans(superuser) == 1
    other = lend(visitor, reason="another")
    assert (other.status_code, loans(superuser)) == (409, 1)
    assert "take that back first" in other.text
    lend(
        visitor,
        reason="another",
        starting=UNTIL,
        until=f"{datetime.fromisoformat(UNTIL) + timedelta(1):%Y-%m-%dT%H:%M}",
    )
    assert loans(superuser) == 2


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"to": "nobody"}, "nobody is none"),
        ({"to": "lead"}, "lent to another enabled person"),
        ({"until": ""}, "write a date and time"),
        ({"until": "tomorrow"}, "write a date and time"),
        ({"until": "2020-01-01T00:00"}, "a time that ends"),
        ({"until": "2999-01-01T00:00"}, "at most 90 days"),
        ({"zone": "Middle/Earth"}, "no time zone"),
        ({"zone": "../../etc/passwd"}, "no time zone"),
        ({"reason": ""}, "say the reason"),
        ({"reason": "x" * 501}, "say it in 500"),
        ({"to": HOSTILE}, "is none"),
        ({"zone": HOSTILE}, "no time zone"),
    ],
)
def test_a_wrong_form_lends_nothing_and_comes_back(
    visitor: Visitor, superuser: Superuser, lead: Person, deputy: Person, changed: dict[str, str], said: str
) -> None:
    """422, with what was entered, as text."""
    visitor.sign_in(lead)
    refused = lend(visitor, **changed)
    assert (refused.status_code, said in refused.text) == (422, True)
    assert "<script" not in refused.text
    assert "\u202e" not in refused.text
    assert sent(refused.text, "/delegations")["role"] == "support_lead"
    assert loans(superuser) == 0


def test_nobody_lends_what_they_do_not_hold(
    visitor: Visitor, superuser: Superuser, lead: Person, deputy: Person
) -> None:
    """By a form of their own making: 403."""
    visitor.sign_in(lead)
    assert lend(visitor, role="operator").status_code == 403
    assert loans(superuser) == 0


@pytest.mark.parametrize(
    ("text", "zone", "means"),
    [
        ("2026-11-30T18:00", "", "2026-11-30T18:00:00+00:00"),
        ("2026-11-30T18:00", "Europe/Berlin", "2026-11-30T17:00:00+00:00"),
        ("2026-07-30T18:00", "Europe/Berlin", "2026-07-30T16:00:00+00:00"),
        ("2026-11-30T18:00+02:00", "Europe/Berlin", "2026-11-30T16:00:00+00:00"),
    ],
)
def test_a_time_means_one_instant(text: str, zone: str, means: str) -> None:
    """By the zone that is said beside it, or within it."""
    assert zoned_instant("until", text, zone) == datetime.fromisoformat(means)


@pytest.mark.parametrize("text", ["2026-03-29T02:30", "2026-10-25T02:30", "0001-01-01T00:00"])
def test_a_time_that_is_shown_twice_or_never_is_refused(text: str) -> None:
    """Rather than guessed; so is one before all calendars."""
    with pytest.raises(RequestRefused):
        zoned_instant("until", text, "Europe/Berlin")
