"""Who added to a request what it lacked never decides on it, and what an operator added is never automatic."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from console.desk.document import shown_document
from console.review import review_lines
from policies.errors import NotPermitted
from resources.store.delegations import delegate
from resources.store.desk_access import vote_obstacle
from resources.store.inbox import Asked, find_asked
from resources.store.inputs import supply
from resources.store.votes import Session, cast_vote, sign_in
from tests.operator.desk import WHY
from tests.operator.supplying import Model, Refunds
from tests.ops import toy
from tests.ops.passes import Shop
from tests.store.released import Worker


class Lacking:
    """A shop in which one request lacks its amount; `olga` is operator and lead, `otto` and `lotte` are leads."""

    def __init__(self, shop: Shop) -> None:
        self.shop = shop
        shop.define(request=Refunds, extractor=Model())
        roles = {"olga": ["operator", "lead"], "otto": ["lead"], "lotte": ["lead"], "carla": ["clerk"]}
        self.tokens = {name: toy.principal(shop.url, name, held, kind="human") for name, held in roles.items()}
        self.tokens["shop"] = shop.clerk
        shop.queue({"one": {"order_id": "A1"}})
        shop.run()
        assert shop.states() == {"one": "needs_review"}

    def session(self, name: str) -> Session:
        """Somebody's session."""
        return sign_in(self.shop.url, self.tokens[name])

    def supply(self, by: str = "olga", **fields: Any) -> None:
        """Add the amount, or other fields, and run."""
        given = fields or {"text": "TOTAL 80.00 EUR"}
        supply(self.shop.url, self.session(by), self.shop.request("one").id, self.shop.workflow, given, WHY)
        self.shop.run()

    @property
    def asked(self) -> Asked:
        """What is asked now."""
        found = find_asked(self.shop.url, "one")
        assert found is not None
        return found

    def vote(self, by: str) -> str:
        """Approve what is asked now."""
        return cast_vote(
            self.shop.url,
            self.session(by),
            approval_id=self.asked.approval_id,
            vote="approve",
            proposal_hash=self.asked.proposal_hash,
            review_hash=self.asked.review_hash,
        ).outcome


@pytest.fixture
def lacking(shop: Shop) -> Lacking:
    """One request that lacks something."""
    return Lacking(shop)


def test_who_supplied_does_not_vote_and_somebody_else_releases_it(lacking: Lacking) -> None:
    """Although they hold the role that decides; the effect happens once."""
    lacking.supply()
    with pytest.raises(NotPermitted):
        lacking.vote("olga")
    said = vote_obstacle(lacking.shop.url, lacking.session("olga").secret, lacking.asked.approval_id)
    assert said == "you supplied input to this request: somebody else decides on it"
    assert lacking.vote("otto") == "released"
    lacking.shop.run_again(2)
    assert lacking.shop.states() == {"one": "completed"}
    assert len(lacking.shop.calls()) == len(lacking.shop.effects()) == 1
    lacking.shop.assert_ledger_intact()


def test_who_supplied_does_not_lend_the_role_around_it(lacking: Lacking) -> None:
    """Nobody decides in their place; of another lead's loan the borrower may."""
    lend(lacking, "olga")
    lacking.supply()
    with pytest.raises(NotPermitted):
        lacking.vote("carla")
    lend(lacking, "lotte")
    assert lacking.vote("carla") == "released"


def lend(lacking: Lacking, lender: str) -> None:
    """Lend carla the role that decides."""
    until = datetime.now(UTC) + timedelta(hours=1)
    delegate(lacking.shop.url, lacking.session(lender), "lead", "carla", until=until, reason="on leave")


def test_the_supplier_of_an_earlier_revision_stays_excluded(lacking: Lacking) -> None:
    """Whoever supplied any part of what is asked, whatever was supplied since."""
    lacking.tokens["oskar"] = toy.principal(lacking.shop.url, "oskar", ["operator", "lead"], kind="human")
    lacking.supply("olga", note="by post")
    lacking.supply("oskar")
    for name in ("olga", "oskar"):
        with pytest.raises(NotPermitted):
            lacking.vote(name)
    assert json.loads(lacking.asked.document)["supplied_by"] == ["olga", "oskar"]
    assert lacking.vote("otto") == "released"


def test_the_table_excludes_suppliers_whatever_a_worker_asks_for(lacking: Lacking) -> None:
    """A worker that leaves them out is corrected."""
    lacking.supply()
    [row] = lacking.shop.rows("select excluded from approval_requests")
    assert lacking.session("olga").principal_id in row.excluded


def test_what_an_operator_supplied_is_never_automatic(lacking: Lacking) -> None:
    """Below every limit, too: the only person who saw it would be the one who said it."""
    lacking.supply(text="TOTAL 5.00 EUR")
    assert lacking.shop.states() == {"one": "awaiting_approval"}
    document = json.loads(lacking.asked.document)
    assert document["reasons"][-1]["because"] == "an operator added to the request, so somebody else decides"
    assert lacking.vote("otto") == "released"
    lacking.shop.run()
    assert lacking.shop.states() == {"one": "completed"}


def test_what_the_initiator_supplied_is_judged_as_if_it_had_come_at_once(lacking: Lacking) -> None:
    """It is their request."""
    lacking.supply("shop", text="TOTAL 5.00 EUR")
    assert lacking.shop.states() == {"one": "completed"}


def test_the_database_itself_starts_nothing_that_an_operator_supplied_as_automatic(worker: Worker) -> None:
    """Whatever code assessed it so."""
    released, operator = worker.released(decision="auto"), worker.person("operator")
    worker.change(released, "supplied = true")
    worker.superuser.run(
        "insert into request_inputs values (:id, 2, :by, now(), '{text}', '{}')", id=released.id, by=operator.id
    )
    assert worker.refusal(released) == "decision_refuses"
    assert worker.untouched(released)


def test_the_reviewer_is_shown_what_was_supplied_and_by_whom(lacking: Lacking) -> None:
    """As a source like any other, beside what was received; at the desk and on the command line."""
    lacking.supply()
    document = json.loads(lacking.asked.document)
    assert document["supplied_by"] == ["olga"]
    assert {"name": "text", "trust": "untrusted", "value": "TOTAL 80.00 EUR"} in document["sources"]
    assert document["actions"][0]["evidence"][0]["quote"] == "TOTAL 80.00 EUR"
    shown = shown_document(lacking.asked.document)
    assert shown.complete
    assert "input supplied by" in shown.html
    assert "  supplied_by: olga" in review_lines(lacking.asked.document)
