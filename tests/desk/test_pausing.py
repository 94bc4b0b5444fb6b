"""The pause switch at the desk: planned, pulled, reported, lifted; by operators alone."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pytest

from policies.effects import EffectState
from tests.desk.conftest import Visitor
from tests.desk.sent import sent
from tests.store.released import ReleasedRequest, Worker
from tests.store.requests import Person

HOSTILE = "<script>alert(1)</script>\u202e"

Act = Callable[..., httpx.Response]


def planned(visitor: Visitor, what: str, act: str = "pause") -> str:
    """The page that says what would happen."""
    return visitor.page("/pauses/plan", act=act, what=what)


@pytest.fixture
def held(worker: Worker) -> ReleasedRequest:
    """A request that may start an effect, of a workflow whose actions are known."""
    worker.superuser.run("insert into action_types values ('refunds', 'order.refund', 'Payments')")
    return worker.released()


@pytest.fixture
def act(visitor: Visitor, operator: Person) -> Act:
    """Plan something and carry it out, by the pages' own forms; the answer to the last."""

    def carried_out(what: str, act: str = "pause", reason: str = "the provider is down") -> httpx.Response:
        return visitor.post("/pauses", **sent(planned(visitor, what, act), "/pauses", reason=reason))

    visitor.sign_in(operator)
    return carried_out


@pytest.mark.parametrize("what", ["everything:*", "workflow:refunds", "action_type:order.refund", "provider:Payments"])
def test_a_pause_is_planned_pulled_and_lifted(
    visitor: Visitor, worker: Worker, held: ReleasedRequest, act: Act, what: str
) -> None:
    """The plan changes nothing; the report says what is held back; resumed, it starts."""
    plan = planned(visitor, what)
    assert "would hold back <strong>1 request</strong>" in plan
    assert "Nothing that it is about is in flight" in plan
    assert worker.superuser.value("select count(*) from pauses") == 0
    done = visitor.post("/pauses", **sent(plan, "/pauses", reason="the provider is down"))
    assert (done.status_code, "From now on nothing of it starts" in done.text) == (200, True)
    assert worker.refusal(held) == "paused"
    page = visitor.page("/pauses")
    assert "the provider is down" in page
    assert "<bdi>operator</bdi>" in page
    lifted = act(what, "resume", "it is back")
    assert (lifted.status_code, "due at once" in lifted.text) == (200, True)
    assert worker.superuser.value("select count(*) from pauses") == 0
    assert "Nothing is paused" in visitor.page("/pauses")


def test_what_is_in_flight_is_named(visitor: Visitor, worker: Worker, held: ReleasedRequest, act: Act) -> None:
    """Before and after: it was started before and cannot be stopped."""
    [started] = worker.start(held, held.start())
    plan, report = planned(visitor, "everything:*"), act("everything:*")
    for page in (plan, report.text):
        assert "cannot be stopped" in page
        assert started.key in page
    assert started.key in visitor.page("/pauses")
    assert worker.record(held, started, EffectState.DONE) == {started.key}


def test_twice_is_once(worker: Worker, held: ReleasedRequest, act: Act) -> None:
    """The same pause again reports the same; a second resume says that there is nothing to lift."""
    assert "Paused" in act("workflow:refunds").text
    assert "Paused" in act("workflow:refunds").text
    assert worker.superuser.value("select count(*) from pauses") == 1
    assert act("workflow:refunds", "resume").status_code == 200
    again = act("workflow:refunds", "resume")
    assert (again.status_code, "not paused any more" in again.text) == (409, True)


@pytest.mark.parametrize(
    "changed",
    [
        {"act": "stop"},
        {"what": ""},
        {"what": "workflow"},
        {"what": "nothing:refunds"},
        {"what": "workflow:none"},
        {"what": "workflow:\0"},
        {"reason": " "},
        {"reason": "x" * 501},
    ],
)
def test_a_wrong_form_pauses_nothing(
    visitor: Visitor, worker: Worker, held: ReleasedRequest, operator: Person, changed: dict[str, str]
) -> None:
    """A name that means nothing, no reason, no act: said by plan and by act."""
    visitor.sign_in(operator)
    fields = {"act": "pause", "what": "workflow:refunds", "reason": "stop", **changed}
    assert visitor.post("/pauses", **fields).status_code == 422
    if "reason" not in changed:
        assert visitor.get("/pauses/plan", **fields).status_code == 422
    assert worker.superuser.value("select count(*) from pauses") == 0


def test_hostile_reasons_are_text(visitor: Visitor, held: ReleasedRequest, act: Act) -> None:
    """In the list; so is a name that means nothing."""
    act("workflow:refunds", reason=HOSTILE)
    page = visitor.page("/pauses")
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;\\u202e" in page
    assert "<script" not in visitor.get("/pauses/plan", act="pause", what=f"workflow:{HOSTILE}").text


def test_only_operators_pause(visitor: Visitor, worker: Worker, held: ReleasedRequest, lead: Person) -> None:
    """A reviewer neither sees nor does it, and has no link to it."""
    visitor.sign_in(lead)
    assert 'href="/pauses"' not in visitor.page("/inbox")
    for path in ("/pauses", "/pauses/plan?act=pause&what=everything:*"):
        assert visitor.get(path).status_code == 403
    refused = visitor.post("/pauses", act="pause", what="everything:*", reason="no")
    assert (refused.status_code, "operator" in refused.text) == (403, True)
    assert worker.superuser.value("select count(*) from pauses") == 0
