"""Input only adds, to what needs review, by who may: anything else is told and stores nothing."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
import sqlalchemy as sa
from pydantic import model_validator
from sqlalchemy.exc import DBAPIError

from policies.errors import NotAuthenticated, NotPermitted, NotPossibleNow, RequestRefused
from resources.store.engine import Duty, engine_for, sqlstate, transaction
from resources.store.inputs import supply
from resources.store.principals import disable_principal
from resources.store.rows import MAX_PAYLOAD
from tests.operator.desk import WHY
from tests.operator.supplying import Refunds, Supplying
from tests.ops import toy


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"order_id": "B7"}, "order_id has a value already"),
        ({"order_id": "A1", "text": "TOTAL 20.00 EUR"}, "order_id has a value already"),
        ({"precise": 1.10}, "precise has a value already"),
        ({"amount": "20.00 EUR"}, "amount: Extra inputs are not permitted.*has the fields order_id, text"),
        ({"count": "many"}, "count: Input should be a valid integer"),
        ({"text": None}, "text is null"),
        ({"text": "a\x00b"}, "text holds a NUL"),
        ({"text": "half \ud83d"}, "cannot be written as JSON"),
        (b'{"text": ["half \\ud83d"]}', "text holds half of a character"),
        ({"text": "x" * MAX_PAYLOAD}, "at most 1048576"),
        ({"text": "x" * (MAX_PAYLOAD - 20)}, "at most 1048576"),
        ({"precise2": float("nan")}, "NaN"),
        ({}, "names no field"),
        (b"[]", "no JSON object"),
        (b'{"text": "a", "text": "b"}', "one key twice"),
        (b'{"text": ', "not JSON"),
        (b"\xff", "not UTF-8"),
        pytest.param(b'{"text": ' + b"[" * 100_000, "nested too deeply", id="deep"),
    ],
)
def test_input_that_cannot_stand_is_told_and_stores_nothing(supplying: Supplying, fields: Any, said: str) -> None:
    """The message names the field and says why; the request waits as before."""
    with pytest.raises(RequestRefused, match=said) as refused:
        supplying.supply(fields)
    assert len(str(refused.value)) < 500
    assert supplying.untouched()


def test_a_field_is_not_changed_by_another_name_of_it(supplying: Supplying) -> None:
    """What the request reads as counts, not how its keys are spelt."""

    class Renamed(Refunds):
        @model_validator(mode="before")
        @classmethod
        def take_the_old_name(cls, fields: dict[str, Any]) -> dict[str, Any]:
            renamed = dict(fields)
            return renamed | {"order_id": renamed.pop("order")} if "order" in fields else fields

    supplying.shop.define(request=Renamed)
    with pytest.raises(RequestRefused, match="order_id would change"):
        supplying.supply({"order": "B7"})
    assert supplying.untouched()


class Renaming(Refunds):
    """A later definition: it requires a channel, and takes an order by two more names."""

    channel: str
    formerly: str | None = None

    @model_validator(mode="before")
    @classmethod
    def take_other_names(cls, fields: dict[str, Any]) -> dict[str, Any]:
        """Either of them is the order, where it is given."""
        read = dict(fields)
        order = read.pop("order", None) or read.get("formerly")
        return read | {"order_id": order} if order else read


class Undecided(Refunds):
    """A later definition that cannot be read without a channel."""

    channel: str | None = None

    @model_validator(mode="after")
    def say_how(self) -> Undecided:
        """One of several things has to be there."""
        if not self.channel and not self.count:
            raise ValueError("neither channel nor count")
        return self


@pytest.mark.parametrize(
    ("request_type", "fields", "said"),
    [
        (Renaming, {"channel": "post", "order": "B7"}, "does not fit Renaming.* and not order$"),
        (Renaming, {"channel": "post", "formerly": "B7"}, "order_id would change"),
        (
            Undecided,
            {"channel": "post"},
            "cannot be read even where channel, text may be missing .*another operation_id",
        ),
    ],
)
def test_nothing_changes_where_what_stands_does_not_fit_a_later_definition(
    supplying: Supplying, request_type: type[Refunds], fields: dict[str, str], said: str
) -> None:
    """It is read without what is added, field by field; where that cannot be, nothing is taken."""
    supplying.shop.define(request=request_type)
    with pytest.raises(RequestRefused, match=said):
        supplying.supply({"text": "TOTAL 20.00 EUR", **fields})
    assert supplying.untouched()


@pytest.mark.parametrize("reason", [" ", "x" * 501])
def test_an_input_says_where_it_comes_from(supplying: Supplying, reason: str) -> None:
    """Its reason stands in the ledger."""
    with pytest.raises(RequestRefused, match="reason"):
        supplying.supply(reason=reason)
    assert supplying.untouched()


def test_initiator_and_operators_may_supply_and_nobody_else(supplying: Supplying) -> None:
    """Strangers, leads and services that hold the operator's role learn and change nothing."""
    program = supplying.desk.sign_in(toy.principal(supplying.shop.url, "robot", ["operator"]))
    others = [supplying.desk.signed_in("lea", ["lead"]), supplying.desk.signed_in("carl", ["clerk"]), program]
    for other in others:
        with pytest.raises(NotPermitted, match="takes its initiator or a person with the role operator"):
            supplying.supply(as_=other)
    assert supplying.untouched()
    assert supplying.supply(as_=supplying.desk.session).revision == 2


def test_who_was_disabled_supplies_nothing(supplying: Supplying) -> None:
    """Their session ended with it."""
    disable_principal(supplying.shop.url, "shop")
    with pytest.raises(NotAuthenticated):
        supplying.supply()
    assert supplying.untouched()


def test_only_what_needs_review_takes_input(supplying: Supplying) -> None:
    """Any other state says what it is and what to do instead."""
    supplying.supply({"text": "TOTAL 80.00 EUR"})
    with pytest.raises(NotPossibleNow, match="it is received, and only what needs_review"):
        supplying.supply({"note": "late"})
    supplying.shop.run()
    with pytest.raises(NotPossibleNow, match=r"it is awaiting_approval: .*failsafe edit"):
        supplying.supply({"note": "late"})
    supplying.shop.vote("one")
    supplying.shop.run()
    with pytest.raises(NotPossibleNow, match="it is completed: submit what is meant under another operation_id"):
        supplying.supply({"note": "late"})
    assert supplying.shop.request("one").revision == 2


def test_a_request_that_is_not_there(supplying: Supplying) -> None:
    """Is said not to be."""
    with pytest.raises(RequestRefused, match="no such request"):
        supply(supplying.shop.url, supplying.initiator, UUID(int=0), supplying.shop.workflow, {"text": "x"}, WHY)


def test_another_workflow_does_not_judge_it(supplying: Supplying) -> None:
    """The definition given must carry the version that the request came in with."""
    supplying.shop.define(version="2")
    with pytest.raises(RequestRefused, match="belongs to refunds 1"):
        supplying.supply()
    assert supplying.untouched()


def test_an_input_made_for_an_earlier_revision_is_refused(supplying: Supplying) -> None:
    """What was validated is what begins, or nothing does."""
    with pytest.raises(NotPossibleNow, match="went on meanwhile"):
        called(supplying, revision=7, payload=b'{"order_id": "A1", "precise": 1.10, "text": "x"}')
    assert supplying.untouched()


@pytest.mark.parametrize(
    ("payload", "said"),
    [
        (b'{"order_id": "B7", "precise": 1.10, "text": "x"}', "order_id has a value"),
        (b'{"precise": 1.10, "text": "x"}', "order_id has a value"),
        (b'{"text": "x"}', "order_id, precise has a value"),
        (b'{"order_id": "A1", "order_id": "B7", "precise": 1.10, "text": "x"}', "order_id has a value"),
        (b'{"order_id": "A1", "order_id": null, "precise": 1.10, "text": "x"}', "order_id has a value"),
        (b'{"order_id": "A1", "precise": 1.10}', "nothing is added"),
        (b'{"order_id": "A1", "precise": 1.10, "text": null}', "nothing is added"),
    ],
)
def test_the_database_itself_lets_input_only_add(supplying: Supplying, payload: bytes, said: str) -> None:
    """Whatever code asks for it."""
    with pytest.raises(RequestRefused, match=said):
        called(supplying, payload=payload)
    assert supplying.untouched()


def called(supplying: Supplying, *, payload: bytes, revision: int = 1) -> None:
    """Call the function of the database past the code in front of it."""
    with transaction(engine_for(Duty.OPERATOR, supplying.shop.url)) as connection:
        connection.execute(
            sa.text("select supply_input(:session, :id, :revision, :payload, 'x')"),
            {
                "session": supplying.initiator.secret,
                "id": supplying.desk.id("one"),
                "revision": revision,
                "payload": payload,
            },
        )


@pytest.mark.parametrize("state", ["done", "refused", "fenced", "unknown", "intended"])
def test_a_request_of_which_an_effect_was_begun_takes_no_input(supplying: Supplying, state: str) -> None:
    """Its keys belong to what was proposed then, whatever became of them."""
    supplying.shop.execute(
        "insert into effects (idempotency_key, request_id, revision, action_id, action_type, ordinal, intent, round,"
        " kind, provider, proposal_hash, parameters_hash, recovery, state, first_sent_at, started_at)"
        " select 'k', id, 1, '1:order.refund', 'order.refund', 1, 1, 1,"
        " 'forward', 'Till', sha256(''), sha256(''), '{}', :state, now(), now() from requests",
        state=state,
    )
    with pytest.raises(NotPossibleNow, match="an effect of it was begun"):
        supplying.supply()
    assert supplying.untouched()


def test_what_is_to_be_cancelled_takes_no_input(supplying: Supplying) -> None:
    """The wish stands."""
    supplying.shop.execute("update requests set cancel_requested_at = now()")
    with pytest.raises(NotPossibleNow, match="failsafe cancel"):
        supplying.supply()
    assert supplying.untouched()


def test_a_worker_cannot_bring_it_back(supplying: Supplying) -> None:
    """The step takes a person, by the function that asks who it is."""
    statement = "update requests set state = 'received', last_event = 'input_supplied', state_seq = state_seq + 1"
    with pytest.raises(DBAPIError) as refused, engine_for(Duty.WORKER, supplying.shop.url).begin() as connection:
        connection.exec_driver_sql(statement)
    assert sqlstate(refused.value) == "FS002"
    assert supplying.untouched()
