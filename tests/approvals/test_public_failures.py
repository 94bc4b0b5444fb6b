"""Faults of other systems that wait for people, as they would look here; `docs/public-failures.md` lists them all."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import httpx
import pytest
from dagster import DagsterInstance, DagsterRun, DagsterRunStatus

from console.desk.application import application
from ops.close_batch import close_batch
from ops.process_batch import STEPS
from ops.request_approval import request_approval
from policies.errors import NotExecuted, NotPermitted, NotPossibleNow, VoteRefused
from policies.proposals import Proposal
from resources.store.inbox import waiting_approvals
from resources.store.principals import disable_principal, set_roles
from resources.store.rounds import read_rounds
from resources.store.votes import cast_vote, sign_in
from tests.console.conftest import Terminal
from tests.console.test_review import document
from tests.desk.conftest import Visitor, served
from tests.operator.desk import Desk
from tests.ops import toy
from tests.ops.passes import Shop, refund
from tests.postgres import Database
from tests.sensors.conftest import Location
from tests.store.released import Worker
from tests.store.requests import AskedRequest, Person, Superuser

BY_HAND: dict[str, Callable[[DagsterInstance, DagsterRun], object]] = {
    "failed": lambda instance, run: instance.report_run_failed(run),
    "cancelled": lambda instance, run: instance.report_run_canceled(run),
    "deleted": lambda instance, run: instance.delete_run(run.run_id),
}


@pytest.fixture
def asked(shop: Shop) -> Shop:
    """A request that waits for a lead."""
    shop.queue({"one": refund("80.00")})
    shop.run()
    return shop


def vote(url: str, voter: Person, asked: AskedRequest) -> str:
    """Approve what was asked; how it stands then."""
    return cast_vote(
        url,
        sign_in(url, voter.token),
        approval_id=asked.approval_id,
        vote="approve",
        proposal_hash=asked.proposal_hash,
        review_hash=asked.review_hash,
    ).outcome


@pytest.mark.parametrize("end", BY_HAND)
def test_a_run_that_somebody_ended_by_hand_answers_for_nobody(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    """Runs hold no truth: who is asked stays asked, and what they release goes on by another run."""
    monkeypatch.setenv("FAILSAFE_DATABASE_URL", database.url())
    with dg.DagsterInstance.ephemeral() as instance:
        location = Location(database, tmp_path, instance)
        waits = location.superuser.asked(location.shop)
        batch = str(location.superuser.value("select batch_key from requests where id = :id", id=waits.id))
        location.opened(batch)
        run_id = location.add_run(batch, DagsterRunStatus.STARTED)
        BY_HAND[end](instance, location.run(run_id))
        assert [one.approval_id for one in waiting_approvals(database.url())] == [waits.approval_id]
        location.opened(batch, run_id=run_id)
        assert vote(database.url(), location.superuser.person("lead", ["support_lead"]), waits) == "released"
        assert location.batches("approvals_landed") == [batch]


def test_what_was_cancelled_leaves_the_inbox(asked: Shop) -> None:
    """Nobody is asked about what will not be done; whoever has the page open still is told so."""
    approval = asked.request("one").approval_id
    assert [one.approval_id for one in waiting_approvals(asked.url)] == [approval]
    Desk(asked).cancel("one")
    assert waiting_approvals(asked.url) == []
    [last] = read_rounds(asked.url, asked.request("one").id)
    assert last.outcome == "cancelled"


def test_a_cancellation_does_not_stop_what_is_being_undone(shop: Shop) -> None:
    """Asked for while the undo waits for its provider, it is refused: what was done is undone, once."""

    def closed_to_undoing(key: str) -> None:
        if key.endswith("undo"):
            raise NotExecuted("come back later")

    toy.set_mood(shop.till, "refuse", "order.refund")
    shop.hooked(before=closed_to_undoing)
    shop.queue({"one": refund("30.00", say="saga")})
    shop.run()
    assert shop.states() == {"one": "compensating"}
    with pytest.raises(NotPossibleNow, match="compensating"):
        Desk(shop).cancel("one")
    assert shop.states() == {"one": "compensating"}
    shop.hooked()
    shop.run_again()
    assert shop.states() == {"one": "compensated"}
    assert len(shop.effects("stock.unreserve")) == 1


def test_a_role_given_later_counts_for_what_waits_already(worker: Worker) -> None:
    """Who may decide is found when they vote, so that nothing has to be asked anew when people change."""
    asked = worker.superuser.asked(worker.person("clerk"))
    newcomer = worker.superuser.person("newcomer", ["clerk"])
    url = worker.url
    with pytest.raises(NotPermitted):
        vote(url, newcomer, asked)
    assert set_roles(url, "newcomer", ["support_lead"])
    assert vote(url, newcomer, asked) == "released"
    assert disable_principal(url, "newcomer")
    [last] = read_rounds(url, asked.id)
    assert [(one.voter, one.vote) for one in last.votes] == [("newcomer", "approve")], "who left is not forgotten"


def test_answers_to_two_questions_do_not_cross(shop: Shop) -> None:
    """Two requests alike but for their order, asked by one run: each answer is taken for its own question only."""
    shop.queue({"one": refund("80.00", order="A1"), "two": refund("80.00", order="A2")})
    shop.run()
    other = shop.row("select * from approval_requests where id = :id", id=shop.request("two").approval_id)
    for name in ("proposal_hash", "review_hash"):
        with pytest.raises(VoteRefused) as refused:
            shop.vote("one", **{name: getattr(other, name)})
        assert refused.value.code == "changed"
    shop.vote("one", vote="deny")
    shop.vote("two")
    shop.run()
    assert shop.states() == {"one": "rejected", "two": "completed"}
    assert [shop.request("two").id.hex in key.replace("-", "") for key in shop.effects()] == [True]


@pytest.mark.parametrize("way", ["function", "page", "bulk", "command line", "a loan"])
def test_nobody_approves_their_own_request_by_any_way(database: Database, tmp_path: Path, way: str) -> None:
    """Not even with every role there is: an operator who submitted it is its initiator all the same."""
    superuser = Superuser(database)
    url = database.url()
    own = superuser.person("everything", ["operator", "auditor", "support_lead"])
    asked = superuser.asked(own, document=json.loads(document()) | {"tier": "low"})
    superuser.run("alter table approval_requests disable trigger user")
    superuser.run("update approval_requests set tier = 'low'")
    superuser.run("alter table approval_requests enable trigger user")
    hashes = f"{asked.approval_id}:{asked.proposal_hash.hex()}:{asked.review_hash.hex()}"
    with served(application(url, {}, loopback=True)) as served_at, httpx.Client(base_url=served_at) as client:
        visitor = Visitor(client)
        visitor.sign_in(own)
        if way == "page":
            assert visitor.vote(asked, "approve").status_code == 403
        elif way == "bulk":
            assert "may not decide" in visitor.post("/bulk", ballot=[hashes], reason="mine").text
    if way == "function":
        with pytest.raises(NotPermitted):
            vote(url, own, asked)
    elif way == "command line":
        said = Terminal(url, tmp_path).run("approve", asked.id, "--hash", asked.review_hash.hex(), token=own.token)
        assert said.exit_code == 1
    elif way == "a loan":
        friend = superuser.person("friend", [])
        terminal = Terminal(url, tmp_path)
        until = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
        terminal.said("delegate", "support_lead", friend.name, "--until", until, "--reason", "x", token=own.token)
        with pytest.raises(NotPermitted):
            vote(url, friend, asked)
    assert superuser.value("select count(*) from approval_votes") == 0
    assert superuser.state(asked.id) == "awaiting_approval"


def test_silence_is_no_answer_and_the_model_hears_nothing_of_it(asked: Shop) -> None:
    """Expired, it has ended: no later run releases it, asks again, or gives the model another try at the same goal."""
    calls: list[str] = []

    def model(request: toy.RefundRequest) -> Proposal:
        calls.append(request.order_id)
        raise AssertionError

    asked.define(extractor=model)
    asked.execute("alter table approval_requests disable trigger user")
    asked.execute("update approval_requests set opened_at = opened_at - interval '3 d', expires_at = clock_timestamp()")
    asked.execute("alter table approval_requests enable trigger user")
    for _ in range(3):
        asked.run_again()
    assert asked.states() == {"one": "expired"}
    assert asked.events("one").count("approval.expired") == 1
    assert (calls, asked.calls(), asked.count("proposals")) == ([], [], 1)


def test_an_answer_that_comes_at_once_is_not_missed(shop: Shop) -> None:
    """Given while the run that asked is still at work: that very run carries it out."""
    shop.queue({"one": refund("80.00")})
    opened = shop.open()
    for step in STEPS:
        opened.carry_out(step)
        if step is request_approval:
            shop.vote("one")
    assert shop.calls() == [], "a pass advances what was due when it opened"
    report = close_batch(opened, STEPS)
    assert report.standing.by_state == {"completed": 1}
    assert len(shop.calls()) == 1


def test_what_was_said_can_be_erased_without_breaking_the_chain(asked: Shop) -> None:
    """The ledger names contents by their hashes: with request, proposal and document gone each chain still verifies."""
    asked.vote("one")
    asked.run()
    told = "".join(json.dumps(payload) for _, payload in asked.ledger("one"))
    assert "TOTAL 80.00" not in told
    asked.execute("alter table proposals disable trigger user")
    asked.execute("alter table approval_requests disable trigger user")
    asked.execute("update requests set payload = '{}'")
    asked.execute("update proposals set output = '{}', canonical = ''")
    asked.execute("update approval_requests set review_document = '{}'")
    asked.assert_ledger_intact()
