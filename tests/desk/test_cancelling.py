"""Deciding against a request at the desk: told first what it comes to, then exactly that, once."""

from __future__ import annotations

import uuid
from collections.abc import Callable

import pytest

from policies.effects import EffectState
from tests.desk.conftest import Visitor
from tests.desk.sent import sent
from tests.desk.work import dead_lettered, unknown_effect
from tests.store.released import Worker
from tests.store.requests import AskedRequest, Person, Superuser

HOSTILE = "<script>alert(1)</script>\u202e"


def cancel(visitor: Visitor, request_id: uuid.UUID, **changed: str) -> tuple[int, str]:
    """Open the page and send its form; status and text of the answer."""
    path = f"/requests/{request_id}/cancel"
    response = visitor.post(path, **sent(visitor.page(path), path, **{"reason": "told so by the customer", **changed}))
    return response.status_code, response.text


def received(worker: Worker) -> uuid.UUID:
    """Accepted, and nothing else."""
    return worker.superuser.received(worker.person("clerk"), "order-received")


def waiting(worker: Worker) -> uuid.UUID:
    """Asked about."""
    return worker.superuser.asked(worker.person("clerk"), "order-waiting").id


def released(worker: Worker) -> uuid.UUID:
    """Released, not begun."""
    return worker.released().id


def needing_review(worker: Worker) -> uuid.UUID:
    """Only a person can tell."""
    request_id = received(worker)
    worker.superuser.move(request_id, "review_needed", "needs_review")
    return request_id


def parked(worker: Worker) -> uuid.UUID:
    """A dead letter."""
    return dead_lettered(worker, "order-dead")


def begun(worker: Worker, state: EffectState, *actions: str) -> uuid.UUID:
    """A request whose first effect came to this."""
    request = worker.released(actions=actions)
    [started] = worker.start(request, request.start())
    if state is not EffectState.IN_FLIGHT:
        worker.record(request, started, state)
    worker.superuser.run(
        "update effects set recovery = cast(:recovery as json) where request_id = :id",
        recovery='{"undo": "stock.unreserve"}' if actions[0] == "stock.reserve" else '{"undo": null}',
        id=request.id,
    )
    return request.id


@pytest.mark.parametrize("situation", [received, waiting, released, needing_review, parked])
def test_before_any_effect_it_is_cancelled(
    visitor: Visitor, worker: Worker, operator: Person, situation: Callable[[Worker], uuid.UUID]
) -> None:
    """In each state the page says so, and asking changes nothing; sent twice it is one cancellation."""
    request_id = situation(worker)
    state = worker.superuser.state(request_id)
    visitor.sign_in(operator)
    path = f"/requests/{request_id}/cancel"
    page = visitor.page(path)
    assert "nothing was done, and nothing will be" in page
    assert worker.superuser.state(request_id) == state
    assert worker.superuser.value("select count(*) from audit_v where type = 'request.cancelled'") == 0
    fields = sent(page, path, reason="told so by the customer")
    for _ in range(2):
        done = visitor.post(path, **fields)
        assert (done.status_code, "It is cancelled" in done.text) == (200, True)
    assert worker.superuser.state(request_id) == "cancelled"
    assert worker.superuser.value("select count(*) from audit_v where type = 'request.cancelled'") == 1
    assert "It is cancelled already" in visitor.page(path)


def test_what_was_done_is_undone_and_the_page_says_so_first(visitor: Visitor, worker: Worker, operator: Person) -> None:
    """With the effects so far."""
    request_id = begun(worker, EffectState.DONE, "stock.reserve", "order.refund")
    visitor.sign_in(operator)
    page = visitor.page(f"/requests/{request_id}/cancel")
    assert "<strong>compensating</strong>: Part of it was done" in page
    assert "stock.reserve at Payments: <strong>done</strong>" in page
    status, text = cancel(visitor, request_id)
    assert (status, "It is being undone" in text) == (200, True)
    assert worker.superuser.state(request_id) == "compensating"


def test_while_an_effect_is_under_way_the_wish_is_noted(visitor: Visitor, worker: Worker, operator: Person) -> None:
    """Said before and after; the state stays."""
    request_id = begun(worker, EffectState.IN_FLIGHT, "stock.reserve", "order.refund")
    visitor.sign_in(operator)
    assert "An effect is under way" in visitor.page(f"/requests/{request_id}/cancel")
    status, text = cancel(visitor, request_id)
    assert (status, "It is noted" in text) == (200, True)
    assert worker.superuser.value("select cancel_requested_at is not null from requests where id = :id", id=request_id)


def test_what_is_too_late_is_said_instead_of_a_form(visitor: Visitor, worker: Worker, operator: Person) -> None:
    """Past what cannot be undone, or ended: 409 with the reason, and nothing is offered."""
    paid = begun(worker, EffectState.DONE, "order.refund", "customer.tell")
    ended = parked(worker)
    visitor.sign_in(operator)
    visitor.post("/cases/carry-out", act="discard", request=str(ended), reason="given up")
    for request_id, why in ((paid, "too late to cancel"), (ended, "can no longer be cancelled")):
        refused = visitor.get(f"/requests/{request_id}/cancel")
        assert (refused.status_code, why in refused.text) == (409, True)
    assert "Cancel this request" not in visitor.page(f"/requests/{ended}")


def test_it_is_cancelled_as_shown_or_not_at_all(visitor: Visitor, worker: Worker, operator: Person) -> None:
    """An effect that began after the page was read makes it another decision: 409, and nothing is changed."""
    request = worker.released(actions=("stock.reserve", "order.refund"))
    visitor.sign_in(operator)
    path = f"/requests/{request.id}/cancel"
    fields = sent(visitor.page(path), path, reason="told so")
    worker.start(request, request.start())
    refused = visitor.post(path, **fields)
    assert (refused.status_code, "nothing was changed" in refused.text) == (409, True)
    assert worker.superuser.value("select cancel_requested_at is null from requests where id = :id", id=request.id)
    assert visitor.post(path, **{**fields, "outlook": "done"}).status_code == 422


def test_a_cancellation_says_why(visitor: Visitor, worker: Worker, operator: Person) -> None:
    """No reason or too long a one: said, and nothing is changed; a hostile one is text."""
    request_id = received(worker)
    visitor.sign_in(operator)
    for reason in (" ", "x" * 501):
        assert cancel(visitor, request_id, reason=reason)[0] == 422
    assert worker.superuser.state(request_id) == "received"
    _, text = cancel(visitor, request_id, reason=HOSTILE)
    assert "<script" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;\\u202e" in text


def test_who_submitted_it_withdraws_it(
    visitor: Visitor, superuser: Superuser, asked: AskedRequest, clerk: Person
) -> None:
    """The link says so; what is parked is in an operator's hands."""
    visitor.sign_in(clerk)
    assert "Withdraw this request" in visitor.page(f"/approvals/{asked.approval_id}")
    assert cancel(visitor, asked.id)[0] == 200
    assert superuser.state(asked.id) == "cancelled"
    page = visitor.page(f"/approvals/{asked.approval_id}")
    assert "Withdraw this request" not in page
    assert 'value="approve"' not in page


def test_others_do_not_cancel(
    visitor: Visitor, worker: Worker, asked: AskedRequest, lead: Person, clerk: Person
) -> None:
    """A reviewer may look and deny, not cancel; a stranger sees nothing; an initiator not what is parked."""
    dead, (unclear, _) = parked(worker), unknown_effect(worker)
    visitor.sign_in(lead)
    assert "Cancel this request" not in visitor.page(f"/approvals/{asked.approval_id}")
    fields = {"outlook": "cancelled", "reason": "no"}
    for person, request_id, status in (
        (lead, asked.id, 403),
        (lead, dead, 422),
        (clerk, unclear, 422),
        (worker.superuser.person("stranger", ["other"]), asked.id, 422),
    ):
        visitor.sign_in(person)
        path = f"/requests/{request_id}/cancel"
        assert visitor.get(path).status_code == visitor.post(path, **fields).status_code == status
    assert worker.superuser.state(asked.id) == "awaiting_approval"
    assert worker.superuser.state(dead) == "dead_lettered"


def test_what_only_a_person_can_tell_is_listed_with_what_to_do(
    visitor: Visitor, worker: Worker, operator: Person
) -> None:
    """Among the cases, with its reason as text; from there it is planned and given up."""
    request_id = needing_review(worker)
    worker.superuser.run("update requests set reason = :reason where id = :id", reason=HOSTILE, id=request_id)
    visitor.sign_in(operator)
    page = visitor.page("/cases")
    assert "order-received" in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;\\u202e" in page
    account = visitor.page(f"/requests/{request_id}")
    assert "submit what is meant anew" in account
    assert f"failsafe supply {request_id} --field NAME=VALUE --reason WHY" in account
    plan = visitor.post("/cases/plan", **sent(account, "/cases/plan", reason="sent anew"), act="discard")
    assert "1 of 1 would be given up for good" in plan.text
    done = visitor.post("/cases/carry-out", **sent(plan.text, "/cases/carry-out"))
    assert (done.status_code, worker.superuser.state(request_id)) == (200, "failed")


def test_a_request_that_people_were_asked_about_says_how_it_stands_now(
    visitor: Visitor, worker: Worker, asked: AskedRequest, lead: Person, operator: Person
) -> None:
    """After the vote the page shows the request's state and reason, and leads an operator to the case."""
    visitor.sign_in(lead)
    assert "The request is now" not in visitor.page(f"/approvals/{asked.approval_id}")
    visitor.vote(asked, "approve")
    worker.superuser.move(asked.id, "gave_up", "dead_lettered")
    worker.superuser.run("update requests set reason = :reason where id = :id", reason=HOSTILE, id=asked.id)
    page = visitor.page(f"/approvals/{asked.approval_id}")
    assert 'state-dead_lettered">dead_lettered' in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;\\u202e" in page
    assert "see the cases" not in page
    visitor.sign_in(operator)
    assert "see the cases" in visitor.page(f"/approvals/{asked.approval_id}")
