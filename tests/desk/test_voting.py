"""Deciding at the desk: on what was shown, once, by who may."""

from __future__ import annotations

import json
import threading
import time

from tests.console.test_review import document
from tests.desk.conftest import Visitor, field
from tests.desk.work import low
from tests.store.released import Worker
from tests.store.requests import AskedRequest, Person, Superuser


def votes(superuser: Superuser) -> object:
    """How many votes stand."""
    return superuser.value("select count(*) from approval_votes")


def test_the_form_carries_what_was_shown(visitor: Visitor, lead: Person, asked: AskedRequest) -> None:
    """Both hashes stand on the page and in its form."""
    visitor.sign_in(lead)
    page = visitor.page(f"/approvals/{asked.approval_id}")
    for name, digest in (("proposal_hash", asked.proposal_hash), ("review_hash", asked.review_hash)):
        assert field(page, name) == digest.hex()
        assert page.count(digest.hex()) >= 2


def test_a_vote_is_counted_and_shown(visitor: Visitor, superuser: Superuser, clerk: Person, lead: Person) -> None:
    """With how many others it waits for, and who said what."""
    asked = superuser.asked(clerk, quorum=2, document=json.loads(document()))
    visitor.sign_in(lead)
    went = visitor.vote(asked, "approve", "looks <b>right</b>\r\nto me")
    assert (went.status_code, went.headers["location"]) == (303, f"/approvals/{asked.approval_id}/vote")
    page = visitor.page(went.headers["location"])
    assert "You voted <strong>approve</strong>" in page
    assert "1 of 2 votes" in page
    assert superuser.value("select reason from approval_votes") == "looks <b>right</b>\nto me"
    visitor.sign_in(superuser.person("second", ["support_lead"]))
    assert "looks &lt;b&gt;right&lt;/b&gt;\nto me" in visitor.page(f"/approvals/{asked.approval_id}")
    visitor.vote(asked, "approve")
    assert superuser.state(asked.id) == "executing"


def test_a_denial_needs_a_reason(visitor: Visitor, superuser: Superuser, asked: AskedRequest, lead: Person) -> None:
    """Without one the page comes back saying so; with one the request is rejected."""
    visitor.sign_in(lead)
    refused = visitor.vote(asked, "deny", "  ")
    assert refused.status_code == 422
    assert "Say why you deny it" in refused.text
    assert field(refused.text, "review_hash") == asked.review_hash.hex()
    assert votes(superuser) == 0
    visitor.vote(asked, "deny", "not theirs")
    assert superuser.state(asked.id) == "rejected"
    assert "Nothing will be done" in visitor.page(f"/approvals/{asked.approval_id}/vote")


def test_the_same_vote_again_is_the_same_vote(
    visitor: Visitor, superuser: Superuser, asked: AskedRequest, lead: Person
) -> None:
    """After a lost answer one sends it again and sees the first; another vote is refused visibly."""
    visitor.sign_in(lead)
    first = visitor.vote(asked, "approve", "yes")
    again = visitor.vote(asked, "approve", "yes")
    assert first.headers["location"] == again.headers["location"]
    other = visitor.vote(asked, "deny", "no, wait")
    assert other.status_code == 409
    assert "you voted already: approve" in other.text
    changed = visitor.vote(asked, "approve", review_hash="0" * 64)
    assert changed.status_code == 409
    assert votes(superuser) == 1


def test_clicks_at_the_same_time_are_one_vote(
    visitor: Visitor, superuser: Superuser, asked: AskedRequest, lead: Person
) -> None:
    """However they interleave, each is answered with the one vote."""
    visitor.sign_in(lead)
    answers: list[int] = []

    def click() -> None:
        answers.append(visitor.vote(asked, "approve").status_code)

    clicks = [threading.Thread(target=click) for _ in range(6)]
    for one in clicks:
        one.start()
    for one in clicks:
        one.join()
    assert answers == [303] * 6
    assert votes(superuser) == 1


def test_what_went_stale_takes_no_vote(
    visitor: Visitor, superuser: Superuser, clerk: Person, asked: AskedRequest, lead: Person
) -> None:
    """Overtaken by a new round, expired, or with other hashes than asked: an error that says so, and no vote."""
    visitor.sign_in(lead)
    mixed = superuser.asked(clerk, "order-2", document=json.loads(document()))
    wrong = visitor.vote(asked, "approve", review_hash=mixed.review_hash.hex())
    assert (wrong.status_code, "not what is asked now" in wrong.text) == (409, True)
    for garbage in ("", "zz", "00"):
        assert visitor.vote(asked, "approve", proposal_hash=garbage).status_code in {409, 422}
    expired = superuser.asked(clerk, "order-3", seconds=0.01)
    time.sleep(0.05)
    assert visitor.vote(expired, "approve").status_code == 409
    superuser.run("update requests set round = 2, approval_id = null where id = :id", id=asked.id)
    stale = visitor.vote(asked, "approve")
    assert (stale.status_code, "is void" in stale.text) == (409, True)
    assert 'role="alert"' in stale.text
    assert votes(superuser) == 0
    page = visitor.page(f"/approvals/{asked.approval_id}")
    assert "it takes no votes any more: voided" in page
    assert 'value="approve"' not in page


def test_who_may_not_decide_sees_why(visitor: Visitor, superuser: Superuser, clerk: Person) -> None:
    """Initiator, payee and others read why instead of a form, and a form of their own making is refused."""
    payee = superuser.person("payee", ["support_lead"], external_id="E8")
    auditor = superuser.person("auditor", ["auditor"])
    asked = superuser.asked(clerk, parties=["E8"], document=json.loads(document()))
    for person, why in (
        (clerk, "you submitted this request"),
        (payee, "touches you, as its payee does"),
        (auditor, "it takes one of these roles: support_lead"),
    ):
        visitor.sign_in(person)
        page = visitor.page(f"/approvals/{asked.approval_id}")
        assert why in page
        assert 'value="approve"' not in page
        assert why in visitor.page("/inbox")
        refused = visitor.vote(asked, "approve")
        assert (refused.status_code, "may not decide" in refused.text) == (403, True)
    assert votes(superuser) == 0


def test_strangers_see_nothing(visitor: Visitor, superuser: Superuser, asked: AskedRequest, lead: Person) -> None:
    """Who neither decides, submitted nor oversees is told the same as where there is nothing."""
    visitor.sign_in(superuser.person("stranger", ["other"]))
    assert "Nothing waits" in visitor.page("/inbox")
    for path in (f"/approvals/{asked.approval_id}", f"/requests/{asked.id}", f"/requests/{asked.id}/timeline"):
        refused = visitor.get(path)
        assert refused.status_code == 422
        assert "order-1" not in refused.text
    assert visitor.get("/find", name="order-1").status_code == 422
    visitor.sign_in(lead)
    assert visitor.get("/find", name="order-1").headers["location"] == f"/requests/{asked.id}"
    assert visitor.get(f"/requests/{asked.id}").headers["location"] == f"/approvals/{asked.approval_id}"


def test_what_is_not_shown_whole_is_not_approved_here(
    visitor: Visitor, superuser: Superuser, clerk: Person, lead: Person
) -> None:
    """A document in a shape this desk does not know is shown as it is stored, without a form."""
    content = json.loads(document()) | {"actions": [{"parameters": ["unknown shape"], "evidence": {"also": "unknown"}}]}
    asked = superuser.asked(clerk, document=content)
    visitor.sign_in(lead)
    page = visitor.page(f"/approvals/{asked.approval_id}")
    assert "This page cannot show all of it" in page
    assert "unknown shape" in page
    assert 'value="approve"' not in page


def test_a_document_that_is_not_its_hash_is_not_shown(
    visitor: Visitor, superuser: Superuser, asked: AskedRequest, lead: Person
) -> None:
    """Should anybody get past the guards and change what is stored, nobody is asked to approve it."""
    superuser.run("alter table approval_requests disable trigger all")
    superuser.run("update approval_requests set review_document = review_document || ' '")
    visitor.sign_in(lead)
    page = visitor.get(f"/approvals/{asked.approval_id}")
    assert page.status_code == 500
    assert "does not match its hash" in page.text
    assert 'value="approve"' not in page.text


def test_earlier_rounds_stay_readable(visitor: Visitor, superuser: Superuser, clerk: Person, lead: Person) -> None:
    """A new round does not erase who said what before."""
    asked = superuser.asked(clerk, quorum=2, document=json.loads(document()))
    visitor.sign_in(lead)
    visitor.vote(asked, "approve", "the first time")
    superuser.run("update requests set round = 2, approval_id = null where id = :id", id=asked.id)
    superuser.run(
        "insert into approval_requests (request_id, revision, round, proposal_hash, review_document, review_hash, tier,"
        " roles, quorum, excluded, excluded_people, opened_at, expires_at)"
        " select request_id, revision, 2, proposal_hash, review_document, review_hash, tier, roles, quorum, excluded,"
        " excluded_people, opened_at + interval '1 second', expires_at from approval_requests where id = :id",
        id=asked.approval_id,
    )
    superuser.run("update requests set approval_id = (select id from approval_requests where round = 2)")
    location = visitor.get(f"/requests/{asked.id}").headers["location"]
    assert location != f"/approvals/{asked.approval_id}"
    page = visitor.page(location)
    assert "the first time" in page
    assert f'href="/approvals/{asked.approval_id}"' in page
    assert 'value="approve"' in page


def test_bulk_is_for_identical_low_tiers_only(
    visitor: Visitor, worker: Worker, clerk: Person, lead: Person, asked: AskedRequest
) -> None:
    """Another tier, another kind, too many, or none: refused before anything is voted on."""
    made = [low(worker, clerk, f"order-low-{number}") for number in range(21)]
    visitor.sign_in(lead)
    inbox = visitor.page("/inbox")
    assert "21 alike: refunds, low" in inbox
    assert inbox.count('name="approval"') == 20

    def ballots(*chosen: AskedRequest) -> list[str]:
        return [f"{one.approval_id}:{one.proposal_hash.hex()}:{one.review_hash.hex()}" for one in chosen]

    for chosen in (made, [made[0], asked], [asked], []):
        refused = visitor.post("/bulk", ballot=ballots(*chosen))
        assert (refused.status_code, votes(worker.superuser)) == (422, 0)
    assert visitor.post("/bulk", ballot=["nonsense"]).status_code == 422
    done = visitor.post("/bulk", ballot=ballots(*made[:20]), reason="read them all")
    assert done.status_code == 200
    assert votes(worker.superuser) == 20
    again = visitor.post("/bulk", ballot=ballots(*made[:20]), reason="read them all")
    assert (again.status_code, votes(worker.superuser)) == (200, 20)
    assert again.text.count("had been counted before") == 20


def test_one_refusal_in_a_bulk_vote_stops_no_other(
    visitor: Visitor, worker: Worker, clerk: Person, lead: Person
) -> None:
    """What was decided by somebody else meanwhile is named; the others are counted."""
    first, second = low(worker, clerk, "order-a"), low(worker, clerk, "order-b")
    visitor.sign_in(lead)
    page = visitor.page(f"/bulk?approval={first.approval_id}&approval={second.approval_id}")
    assert page.count(' name="ballot"') == 2
    worker.superuser.run("update requests set round = 2, approval_id = null where id = :id", id=first.id)
    result = visitor.post(
        "/bulk",
        ballot=[f"{one.approval_id}:{one.proposal_hash.hex()}:{one.review_hash.hex()}" for one in (first, second)],
    )
    assert result.status_code == 409
    assert "not taken: this approval request is void" in result.text
    assert "released" in result.text
    assert worker.superuser.state(second.id) == "executing"
