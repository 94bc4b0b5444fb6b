"""A reviewer's changes are a new proposal: judged anew, decided by somebody else, and one effect in the end."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from typing import Any

import pytest

from policies.edits import Change
from policies.errors import NotPermitted, NotPossibleNow, RequestRefused, VoteRefused
from resources.store.edits import Edited, edit_proposal
from resources.store.inbox import Asked, find_asked
from resources.store.principals import disable_principal
from resources.store.rounds import read_rounds
from resources.store.votes import Session, Vote, cast_vote, sign_in
from tests.ops import toy
from tests.ops.passes import Shop, refund
from tests.store.released import Worker

TEXT = "TOTAL 80.00 EUR\nof which returned: 60.00 EUR\ntip 5.00 EUR\neverything 700.00 EUR"


def lower(amount: str = "60.00") -> Change:
    """Another amount, with the quote that shows it."""
    return Change("order.refund", "amount", f"{amount} EUR", (("text", f"{amount} EUR"),))


class Editing:
    """A shop in which one request waits, with two leads."""

    def __init__(self, shop: Shop) -> None:
        self.shop = shop
        self.tokens = {
            name: toy.principal(shop.url, name, ["lead"], kind="human", external_id=f"E-{name}")
            for name in ("edda", "otto")
        }
        shop.queue({"one": refund("80.00", text=TEXT)})
        shop.run()

    def session(self, name: str = "edda") -> Session:
        """A lead's session."""
        return sign_in(self.shop.url, self.tokens[name])

    @property
    def asked(self) -> Asked:
        """What is asked now."""
        found = find_asked(self.shop.url, "one")
        assert found is not None
        return found

    def edit(self, *changes: Change, by: str = "edda", asked: Asked | None = None, reason: str = "one was kept") -> Any:
        """Edit what is asked."""
        return edit_proposal(
            self.shop.url, self.session(by), asked or self.asked, self.shop.workflow, changes or [lower()], reason
        )

    def vote(self, by: str, vote: Vote = "approve", asked: Asked | None = None) -> str:
        """Vote on what is asked now, or was."""
        asked = asked or self.asked
        return cast_vote(
            self.shop.url,
            self.session(by),
            approval_id=asked.approval_id,
            vote=vote,
            proposal_hash=asked.proposal_hash,
            review_hash=asked.review_hash,
        ).outcome

    def paid(self) -> list[dict[str, Any]]:
        """The parameters of every refund at the till."""
        with sqlite3.connect(self.shop.till) as ledger:
            rows = ledger.execute("select parameters from effects where type = 'order.refund'").fetchall()
        return [json.loads(parameters)["amount"] for (parameters,) in rows]

    def untouched(self) -> bool:
        """Nothing of an edit was stored."""
        one = self.shop.request("one")
        return (one.state, one.revision) == ("awaiting_approval", 1) and self.shop.count("proposals") == 1


@pytest.fixture
def editing(shop: Shop) -> Editing:
    """One request that waits and two leads."""
    return Editing(shop)


def test_an_edit_is_judged_anew_and_released_by_somebody_else(editing: Editing) -> None:
    """The new revision goes all the way; the effect has the edited parameters, once."""
    made = editing.edit()
    assert isinstance(made, Edited)
    one = editing.shop.request("one")
    assert (one.state, one.revision, one.approval_id, one.reason) == ("proposal_ready", 2, None, "edited: one was kept")
    editing.shop.run()
    assert editing.asked.proposal_hash == made.proposal_hash
    with pytest.raises(NotPermitted):
        editing.vote("edda")
    assert editing.vote("otto") == "released"
    editing.shop.run_again(2)
    assert editing.shop.states() == {"one": "completed"}
    assert editing.paid() == [{"minor": 6000, "currency": "EUR"}]
    assert len(editing.shop.calls()) == 1
    editing.shop.assert_ledger_intact()


def test_an_edit_is_told_in_the_ledger_and_to_the_next_reviewer(editing: Editing) -> None:
    """Who changed which proposal into which, and why; the document names the editor."""
    was = editing.asked.proposal_hash
    made = editing.edit()
    [told] = [payload for kind, payload in editing.shop.ledger("one") if kind == "proposal.edited"]
    assert told["was"] == was.hex()
    assert told["proposal"] == made.proposal_hash.hex()
    assert (told["event"], told["state"], told["reason"]) == ("edited", "proposal_ready", "one was kept")
    editing.shop.run()
    document = json.loads(editing.asked.document)
    assert document["edited_by"] == ["edda"]
    assert document["actions"][0]["parameters"]["amount"] == {"minor": 6000, "currency": "EUR"}
    assert document["actions"][0]["evidence"][-1] == {"parameter": "amount", "source": "text", "quote": "60.00 EUR"}


def test_votes_on_what_was_edited_do_not_count_and_stay_in_the_history(shop: Shop) -> None:
    """One of two had approved the old parameters; the edit voids that, and needs two others."""
    shop.set_policy(toy.POLICY.replace("people: 1", "people: 2", 1))
    editing = Editing(shop)
    assert editing.vote("otto") == "open"
    stale = editing.asked
    editing.edit()
    editing.tokens["lotte"] = toy.principal(shop.url, "lotte", ["lead"], kind="human")
    with pytest.raises(VoteRefused, match="new round or revision"):
        editing.vote("lotte", asked=stale)
    shop.run()
    assert editing.vote("lotte") == "open"
    assert editing.vote("otto") == "released"
    rounds = read_rounds(shop.url, shop.request("one").id)
    assert [(one.revision, one.outcome, len(one.votes)) for one in rounds] == [(2, "released", 2), (1, "voided", 1)]


def test_an_edit_into_what_would_be_automatic_is_still_decided_by_somebody_else(editing: Editing) -> None:
    """Nobody releases something by changing it until nobody else is asked."""
    editing.edit(lower("5.00"))
    editing.shop.run()
    assert editing.shop.states() == {"one": "awaiting_approval"}
    with pytest.raises(NotPermitted):
        editing.vote("edda")
    assert editing.vote("otto") == "released"
    editing.shop.run()
    assert editing.paid() == [{"minor": 500, "currency": "EUR"}]


def test_the_database_itself_starts_no_edited_proposal_as_automatic(worker: Worker) -> None:
    """Whatever code assessed it so: without a release by somebody else nothing starts."""
    released, editor = worker.released(decision="auto"), worker.person("lead")
    worker.tamper("proposals", f"edited_by = '{editor.id}'", released)
    assert worker.refusal(released) == "decision_refuses"
    assert worker.untouched(released)


def test_an_edit_into_what_policy_refuses_is_refused_by_policy(editing: Editing) -> None:
    """The tier is found anew."""
    editing.edit(lower("700.00"))
    editing.shop.run()
    assert editing.shop.states() == {"one": "rejected"}
    assert editing.shop.calls() == []


def test_a_second_edit_excludes_both_editors(editing: Editing) -> None:
    """Whoever edited any revision never decides on the request again."""
    editing.edit()
    editing.shop.run()
    editing.edit(lower("5.00"), by="otto")
    editing.shop.run()
    for name in ("edda", "otto"):
        with pytest.raises(NotPermitted):
            editing.vote(name)
        with pytest.raises(NotPermitted):
            editing.edit(by=name)
    assert json.loads(editing.asked.document)["edited_by"] == ["edda", "otto"]
    assert editing.shop.vote("one", "lena").outcome == "released"


def test_an_editor_stays_excluded_in_a_later_round(editing: Editing) -> None:
    """A stale policy asks anew: the editor is out there too, and cannot lend the role around it."""
    editing.edit()
    editing.shop.run()
    editing.vote("otto")
    editing.shop.set_policy(toy.POLICY.replace("people: 1", "people: 2", 1).replace('"1"', '"2"', 1))
    editing.shop.run()
    assert editing.shop.request("one").round == 2
    with pytest.raises(NotPermitted):
        editing.vote("edda")


def test_the_table_excludes_editors_whatever_a_worker_asks_for(editing: Editing) -> None:
    """A worker that leaves them out is corrected."""
    editing.edit()
    editing.shop.run()
    [row] = editing.shop.rows("select excluded, excluded_people from approval_requests where revision = 2")
    [edda] = editing.shop.rows("select id from principals where name = 'edda'")
    assert edda.id in row.excluded


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        (
            [Change("order.refund", "amount", "60.00 EUR")],
            "authority_unsupported",
        ),  # the old quote shows another amount
        ([Change("order.refund", "amount", "61.00 EUR", (("text", "60.00 EUR"),))], "authority_unsupported"),
        ([Change("order.refund", "amount", "61.00 EUR", (("text", "61.00 EUR"),))], "quote_not_found"),
        ([Change("order.refund", "amount", "60.00 EUR", (("letter", "60.00 EUR"),))], "source_unknown"),
        ([Change("order.refund", "amount", "2000.00 EUR")], "over_limit"),
        ([Change("order.refund", "amount", "lots")], "bad_value"),
        ([Change("order.refund", "amount", "")], "bad_value"),
        ([Change("order.refund", "order_id", "gone")], "record_missing"),
        ([Change("order.refund", "order_id", "B7")], "authority_unsupported"),
        ([Change("order.refund", "order_id", "A\udcff")], "forbidden_character"),
        ([Change("order.refund", "payee", "me")], "parameter_unknown"),
        ([Change("stock.reserve", "order_id", "A1")], "unknown_action"),
        ([lower(), lower("5.00")], "bad_value"),
    ],
)
def test_a_change_that_cannot_stand_is_told_and_stores_nothing(
    editing: Editing, changes: Sequence[Change], code: str
) -> None:
    """Evidence, records, limits and the schema hold for a person's values as for a model's."""
    findings = editing.edit(*changes)
    assert code in {one.code for one in findings}
    assert editing.untouched()


def test_an_edit_that_changes_nothing_is_refused(editing: Editing) -> None:
    """People are not asked again about the same."""
    with pytest.raises(RequestRefused, match="asked already"):
        editing.edit(Change("order.refund", "amount", "80.00 EUR"))
    assert editing.untouched()


def test_an_edit_says_why(editing: Editing) -> None:
    """Its reason stands in the ledger."""
    with pytest.raises(RequestRefused, match="reason"):
        editing.edit(reason=" ")
    assert editing.untouched()


def test_who_may_not_vote_may_not_edit(editing: Editing) -> None:
    """Initiator, strangers, services and the disabled learn nothing of it and change nothing."""
    shop = editing.shop
    editing.tokens["stranger"] = toy.principal(shop.url, "stranger", ["clerk"], kind="human")
    editing.tokens["robot"] = toy.principal(shop.url, "robot", ["lead"])
    editing.tokens["initiator"] = shop.clerk
    for name in ("stranger", "robot", "initiator"):
        with pytest.raises(NotPermitted):
            editing.edit(by=name)
    assert editing.untouched()


def test_an_edit_of_what_is_over_is_refused(editing: Editing) -> None:
    """Decided, or edited by somebody else meanwhile: the late editor is told."""
    shown = editing.asked
    editing.edit(by="otto")
    with pytest.raises(VoteRefused) as void:
        editing.edit(asked=shown)
    assert void.value.code == "resolved"
    editing.shop.run()
    editing.vote("edda", "deny")
    with pytest.raises(VoteRefused) as denied:
        editing.edit(by="edda", asked=editing.asked)
    assert denied.value.code == "resolved"


def test_an_edit_frees_the_claims_of_what_it_replaces(editing: Editing) -> None:
    """The new revision takes its own, if it may."""
    editing.shop.execute(
        "insert into claims select 'refunds', 'order', sha256('1'), id from requests where operation_id = 'one'"
    )
    editing.edit()
    assert editing.shop.count("claims") == 0


def test_nothing_is_edited_once_an_effect_was_begun(editing: Editing) -> None:
    """Its key belongs to the parameters that were sent."""
    editing.shop.execute(
        "insert into effects (idempotency_key, request_id, revision, action_id, action_type, ordinal, intent, round,"
        " kind, provider, proposal_hash, parameters_hash, recovery, state, first_sent_at, started_at)"
        " select 'k', id, 1, '1:order.refund', 'order.refund', 1, 1, 1,"
        " 'forward', 'Till', sha256(''), sha256(''), '{}', 'unknown', now(), now() from requests"
    )
    with pytest.raises(NotPossibleNow):
        editing.edit()
    assert editing.untouched()


def test_the_model_is_not_asked_again_after_an_edit(editing: Editing) -> None:
    """The edited revision is the proposal: neither a rerun nor a redrive brings the original back."""

    def stubborn(_: Any) -> Any:
        raise AssertionError("the model was asked")

    editing.edit()
    editing.shop.define(extractor=stubborn)
    editing.shop.run()
    editing.shop.execute(
        "update requests set state = 'dead_lettered', last_event = 'gave_up', state_seq = state_seq + 1"
    )
    editing.shop.execute(
        "update requests set state = 'received', last_event = 'redriven', state_seq = state_seq + 1, round = round + 1,"
        " approval_id = null"
    )
    editing.shop.run()
    assert json.loads(editing.asked.document)["actions"][0]["parameters"]["amount"]["minor"] == 6000
    editing.vote("otto")
    editing.shop.run()
    assert editing.paid() == [{"minor": 6000, "currency": "EUR"}]


def test_what_was_approved_is_what_runs_whatever_the_model_says_later(editing: Editing) -> None:
    """Approve A; a model that would now say B changes nothing."""
    editing.vote("otto")
    editing.shop.define(extractor=lambda request: toy.toy_model(request.model_copy(update={"text": "TOTAL 5.00 EUR"})))
    editing.shop.run()
    assert editing.paid() == [{"minor": 8000, "currency": "EUR"}]


def test_an_editor_who_is_disabled_later_leaves_the_edit_standing(editing: Editing) -> None:
    """It was decided on by somebody else."""
    editing.edit()
    disable_principal(editing.shop.url, "edda")
    editing.shop.run()
    assert editing.vote("otto") == "released"
    editing.shop.run()
    assert editing.shop.states() == {"one": "completed"}
