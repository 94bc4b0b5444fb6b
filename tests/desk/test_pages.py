"""The other pages: the inbox and its filters, what stands in no document, the timeline, the operators' cases."""

from __future__ import annotations

import json

import pytest

from tests.console.test_review import document
from tests.desk.conftest import Visitor
from tests.desk.work import dead_lettered, failed_compensation, late_effect, unknown_effect
from tests.store.released import Worker
from tests.store.requests import AskedRequest, Person, Superuser

HOSTILE = "<script>alert(1)</script>\u202e\u200b"
ESCAPED = "&lt;script&gt;alert(1)&lt;/script&gt;\\u202e\\u200b"


def test_the_inbox_filters(visitor: Visitor, superuser: Superuser, clerk: Person, lead: Person) -> None:
    """By workflow, tier, age and amount, soonest expiry first; a filter that does not exist is said."""
    later = superuser.asked(clerk, "order-later", document=json.loads(document(amount="80.00 EUR")))
    superuser.asked(clerk, "order-soon", seconds=60, document=json.loads(document()))
    superuser.asked(clerk, "order-unread", document={"padding": "x" * 70_000})
    superuser.asked(clerk, "order-expired", seconds=0.01)
    visitor.sign_in(lead)

    def listed(**query: str) -> list[str]:
        page = visitor.page("/inbox", **query)
        return [name for name in ("order-soon", "order-later", "order-unread", "order-expired") if name in page]

    everything = ["order-soon", "order-later", "order-unread"]
    assert listed() == listed(workflow="refunds", tier="medium") == everything
    assert visitor.page("/inbox").index("order-soon") < visitor.page("/inbox").index("order-later")
    assert listed(workflow="other") == listed(tier="high") == listed(age="1h") == []
    assert listed(amount="70.00 eur") == ["order-later", "order-unread"]
    assert listed(amount="60.00 EUR") == everything
    assert listed(amount="1.00 USD") == ["order-unread"]
    superuser.run("alter table approval_requests disable trigger user")
    superuser.run(
        "update approval_requests set opened_at = opened_at - interval '2 hours' where id = :id", id=later.approval_id
    )
    assert listed(age="1h") == ["order-later"]
    for wrong in ({"tier": "x"}, {"age": "x"}, {"amount": "much"}):
        assert visitor.get("/inbox", **wrong).status_code == 422


def test_hostile_names_and_reasons_are_text(
    visitor: Visitor, superuser: Superuser, lead: Person, operator: Person
) -> None:
    """Operation ids, subjects, names, reasons, failures: wherever they are shown they are escaped and nothing hides."""
    clerk = superuser.person(f"clerk {HOSTILE}", ["support_lead"], external_id="E9")
    waiting = superuser.asked(
        clerk, f"order {HOSTILE}", subject=f"E {HOSTILE}", quorum=2, document=json.loads(document(order_id=HOSTILE))
    )
    other = superuser.received(clerk, f"other {HOSTILE}", subject=f"S {HOSTILE}")
    superuser.run("update requests set reason = :reason where id = :id", reason=HOSTILE, id=other)
    voter = superuser.person(f"voter {HOSTILE}", ["support_lead"])
    visitor.sign_in(voter)
    visitor.vote(waiting, "approve", HOSTILE)
    paths = [f"/approvals/{waiting.approval_id}/vote", "/inbox", f"/approvals/{waiting.approval_id}"]
    pages = [visitor.page(path) for path in paths]
    visitor.sign_in(operator)
    paths += [f"/approvals/{waiting.approval_id}", f"/requests/{waiting.id}/timeline", f"/requests/{other}"]
    pages += [visitor.page(path) for path in paths[3:]]
    pages.append(visitor.get("/inbox", amount=HOSTILE).text)
    pages.append(visitor.get("/inbox", workflow=HOSTILE).text)
    for page in pages:
        assert "<script" not in page
        assert ESCAPED in page
        assert "\u202e" not in page
        assert "\u200b" not in page


def test_the_timeline_tells_and_verifies(
    visitor: Visitor, superuser: Superuser, asked: AskedRequest, lead: Person
) -> None:
    """Who did what, with the chain recomputed; a changed event is an alarm."""
    visitor.sign_in(lead)
    visitor.vote(asked, "approve", "fine")
    page = visitor.page(f"/requests/{asked.id}/timeline")
    assert "The chain is intact" in page
    assert "approval.vote" in page
    assert "<bdi>lead</bdi>" in page
    superuser.run("alter table audit_events disable trigger all")
    superuser.run(
        "update audit_events set payload = cast('{\"vote\": \"deny\"}' as bytea) where type = 'approval.vote'"
    )
    assert "The chain is damaged at event" in visitor.page(f"/requests/{asked.id}/timeline")


def test_pages_of_operators_are_for_operators(visitor: Visitor, worker: Worker, lead: Person) -> None:
    """A reviewer neither sees nor does what an operator may, by page or by form."""
    letter = dead_lettered(worker, "order-dead")
    _, key = unknown_effect(worker)
    compensation = failed_compensation(worker)
    visitor.sign_in(lead)
    for path in ("/cases", f"/cases/effect?key={key}", f"/cases/compensations/{compensation}"):
        assert visitor.get(path).status_code == 403
    evidence = "ten characters and more"
    for path, fields in (
        ("/cases/plan", {"act": "redrive", "request": str(letter), "reason": "x"}),
        ("/cases/carry-out", {"act": "redrive", "request": str(letter), "reason": "x"}),
        ("/cases/carry-out", {"act": "discard", "request": str(letter), "reason": "x"}),
        ("/cases/effect", {"key": key, "answer": "done", "evidence": evidence}),
        (f"/cases/compensations/{compensation}", {"evidence": evidence}),
    ):
        assert visitor.post(path, **fields).status_code == 403
    assert worker.superuser.state(letter) == "dead_lettered"
    assert worker.superuser.state(compensation) == "compensation_failed"
    assert worker.superuser.value("select state from effects where idempotency_key = :key", key=key) == "unknown"


def test_an_operators_act_is_planned_and_done_once(visitor: Visitor, worker: Worker, operator: Person) -> None:
    """The plan changes nothing and says what stays; the same form twice does it once and says so."""
    going, staying = dead_lettered(worker, "order-going"), dead_lettered(worker, "order-staying", "<b>failed</b>")
    visitor.sign_in(operator)
    page = visitor.page("/cases")
    assert "&lt;b&gt;failed&lt;/b&gt;" in page
    fields = {"act": "redrive", "request": [str(going), str(staying)], "reason": "the provider is back"}
    worker.superuser.run("update requests set state = 'failed', last_event = 'discarded', state_seq = state_seq + 1,"
                         " closed_at = clock_timestamp() where id = :id", id=staying)  # fmt: skip
    plan = visitor.post("/cases/plan", **fields)
    assert plan.status_code == 200
    assert "1 of 2 would be redriven" in plan.text
    assert "<bdi>order-staying</bdi>" in plan.text
    assert worker.superuser.state(going) == "dead_lettered"
    done = visitor.post("/cases/carry-out", **fields | {"request": str(going)})
    assert (done.status_code, worker.superuser.state(going)) == (200, "received")
    again = visitor.post("/cases/carry-out", **fields | {"request": str(going)})
    assert (again.status_code, "it is received" in again.text) == (409, True)
    assert worker.superuser.value("select round from requests where id = :id", id=going) == 2


@pytest.mark.parametrize(
    "changed",
    [{"act": "delete"}, {"request": "x"}, {"request": []}, {"reason": ""}, {"reason": "x" * 501}],
    ids=["act", "id", "nothing", "reason", "long"],
)
def test_a_wrong_operators_form_changes_nothing(
    visitor: Visitor, worker: Worker, operator: Person, changed: dict[str, str]
) -> None:
    """An act that does not exist, no request, no reason: said, and nothing happens."""
    letter = dead_lettered(worker, "order-dead")
    visitor.sign_in(operator)
    for path in ("/cases/plan", "/cases/carry-out"):
        fields = {"act": "redrive", "request": str(letter), "reason": "back"} | changed
        assert visitor.post(path, **fields).status_code == 422
    assert worker.superuser.state(letter) == "dead_lettered"


def test_an_operators_word_needs_evidence(visitor: Visitor, worker: Worker, operator: Person) -> None:
    """Too short, no answer, or about what is known already: nothing is changed."""
    _, key = unknown_effect(worker)
    visitor.sign_in(operator)
    assert visitor.post("/cases/effect", key=key, answer="done", evidence="short").status_code == 422
    assert visitor.post("/cases/effect", key=key, answer="perhaps", evidence="long enough, surely").status_code == 422
    assert visitor.post("/cases/effect", key="none", answer="done", evidence="long enough, surely").status_code == 422
    assert visitor.get("/cases/effect", key="none").status_code == 422
    assert worker.superuser.value("select state from effects where idempotency_key = :key", key=key) == "unknown"
    assert visitor.post("/cases/effect", key=key, answer="not done", evidence="long enough, surely").status_code == 303
    assert worker.superuser.value("select state from effects where idempotency_key = :key", key=key) == "fenced"
    assert visitor.post("/cases/effect", key=key, answer="done", evidence="long enough, surely").status_code == 409


def test_what_came_late_is_undone_on_an_operators_word(visitor: Visitor, worker: Worker, operator: Person) -> None:
    """Offered for late effects alone; the next run does it, and the effect waits for that."""
    _, key = unknown_effect(worker)
    visitor.sign_in(operator)
    assert 'value="undo"' not in visitor.page("/cases/effect", key=key)
    asked = {"key": key, "answer": "undo", "evidence": "the customer was paid twice"}
    assert visitor.post("/cases/effect", **asked).status_code == 409
    late = late_effect(worker)
    asked["key"] = late
    assert 'value="undo"' in visitor.page("/cases/effect", key=late)
    assert visitor.post("/cases/effect", **asked | {"evidence": " "}).status_code == 422
    assert visitor.post("/cases/effect", **asked).status_code == 303
    assert "waits for its undo by a run" in visitor.page("/cases/effect", key=late)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nowhere", 404),
        ("GET", "/approvals/x", 404),
        ("POST", "/inbox", 405),
        ("GET", "/static/../desk.py", 404),
    ],
)
def test_what_is_not_there_is_a_page_too(visitor: Visitor, method: str, path: str, status: int) -> None:
    """A page in the same frame, not a bare word."""
    response = visitor.client.request(method, path)
    assert response.status_code == status
    assert "failsafe desk" in response.text
