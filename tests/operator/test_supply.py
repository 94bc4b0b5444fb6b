"""A person adds what a request lacked: a new revision, every stage anew, and one effect in the end."""

from __future__ import annotations

import hashlib
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa

from policies.errors import NotPossibleNow, RequestRefused
from resources.store.inputs import Supplied
from tests.operator.desk import WHY
from tests.operator.supplying import LACKING, Refunds, Supplying
from tests.ops.passes import Shop


def test_what_was_missing_is_supplied_and_the_request_goes_all_the_way(supplying: Supplying) -> None:
    """The model is asked anew and quotes what was supplied; the effect happens once."""
    assert supplying.supply() == Supplied(2, ("text",))
    one = supplying.shop.request("one")
    assert (one.state, one.revision, one.round, one.reason, one.last_event) == (
        "received",
        2,
        1,
        None,
        "input_supplied",
    )
    supplying.shop.run()
    supplying.shop.run_again(2)
    assert supplying.shop.states() == {"one": "completed"}
    assert [request.text for request in supplying.model.asked] == [None, "TOTAL 20.00 EUR"]
    assert len(supplying.shop.calls()) == len(supplying.shop.effects()) == 1
    outputs = supplying.shop.rows("select revision, kind from proposals order by 1")
    assert [tuple(row) for row in outputs] == [(1, "abstention"), (2, "proposal")]
    supplying.shop.assert_ledger_intact()


def test_what_was_received_stays_and_so_its_submission_is_still_a_replay(supplying: Supplying) -> None:
    """Payload and fingerprint are those of intake; what was supplied is another payload."""
    before = supplying.shop.row("select payload, payload_fingerprint from requests")
    supplying.supply()
    assert supplying.shop.row("select payload, payload_fingerprint from requests") == before
    assert bytes(before.payload) == LACKING
    assert [receipt.replayed for receipt in supplying.submit().receipts] == [True]
    assert supplying.submit(LACKING.replace(b"}", b', "text": "TOTAL 20.00 EUR"}')).problems[0].conflict


def test_the_ledger_names_fields_and_person_and_holds_no_value(supplying: Supplying) -> None:
    """And a hash by which the amended payload is known."""
    supplying.supply({"text": "TOTAL 20.00 EUR", "note": "a very private matter"})
    kind, told = supplying.shop.ledger("one")[-1]
    amended = supplying.shop.row("select payload from request_inputs").payload
    assert kind == "request.input_supplied"
    assert told == {
        "event": "input_supplied",
        "state": "received",
        "revision": 2,
        "fields": ["note", "text"],
        "payload_sha256": hashlib.sha256(amended).hexdigest(),
        "reason": WHY,
    }
    [event] = supplying.shop.rows("select actor from audit_v where type = 'request.input_supplied'")
    assert event.actor == f"principal:{supplying.initiator.principal_id}"
    whole = "".join(row.payload for row in supplying.shop.rows("select payload from audit_v"))
    assert "private" not in whole
    assert "20.00" not in whole
    supplying.shop.assert_ledger_intact()


def test_values_stay_as_they_were_written(supplying: Supplying) -> None:
    """To the digit: a decimal is not read and written anew."""
    supplying.supply(b'{"text": "TOTAL 20.00 EUR", "count": 3}')
    amended = supplying.shop.row("select payload from request_inputs").payload.decode()
    assert amended == '{"order_id": "A1", "note": null, "precise": 1.10, "text": "TOTAL 20.00 EUR", "count": 3}'


def test_what_is_still_missing_can_be_supplied_later(supplying: Supplying) -> None:
    """Each input builds on the one before."""
    assert supplying.supply({"note": "by post"}) == Supplied(2, ("note",))
    supplying.shop.run()
    assert supplying.shop.states() == {"one": "needs_review"}
    with pytest.raises(RequestRefused, match="note has a value already"):
        supplying.supply({"note": "by hand", "text": "TOTAL 20.00 EUR"})
    assert supplying.supply() == Supplied(3, ("text",))
    supplying.shop.run()
    assert supplying.shop.states() == {"one": "completed"}
    assert [request.note for request in supplying.model.asked] == [None, "by post", "by post"]
    told = supplying.shop.rows("select fields, revision from request_inputs order by 2")
    assert [tuple(row) for row in told] == [(["note"], 2), (["text"], 3)]


def test_what_a_later_definition_requires_can_be_supplied(shop: Shop) -> None:
    """A request that no longer fits its schema waits for a person, who adds what the schema asks for since."""

    class Stricter(Refunds):
        channel: str

    supplying = Supplying(shop)
    supplying.supply()
    shop.define(request=Stricter)
    shop.run()
    assert "does not fit its schema: channel" in shop.request("one").reason
    with pytest.raises(RequestRefused, match="channel: Field required"):
        supplying.supply({"note": "by post"})
    supplying.supply({"channel": "post"})
    shop.run()
    assert shop.states() == {"one": "completed"}


def test_a_value_that_is_no_number_is_no_obstacle(shop: Shop) -> None:
    """NaN, sent as text, is what it was, though it is no equal of itself."""

    class Measured(Refunds):
        parts: tuple[dict[str, float], ...] = ()

    supplying = Supplying(shop, b'{"order_id": "A1", "precise": "NaN", "parts": [{"weight": "NaN"}]}', Measured)
    assert supplying.supply().revision == 2


def test_the_new_revision_begins_without_what_the_old_one_used_up(supplying: Supplying) -> None:
    """Attempts, crashes, deadlines and judgements are of the revision before."""
    supplying.shop.execute(
        "update requests set attempts = 3, crash_count = 2, lone_crash_count = 1, rechecked_until = now(),"
        " retry_until = now(), next_eligible_at = now() + interval '1 h'"
    )
    supplying.shop.execute("insert into claims select 'refunds', 'order', sha256('1'), id from requests")
    supplying.supply()
    one = supplying.shop.request("one")
    assert (one.attempts, one.crash_count, one.lone_crash_count) == (0, 0, 0)
    assert (one.retry_until, one.rechecked_until, one.approval_id) == (None, None, None)
    assert supplying.shop.count("claims") == 0
    supplying.shop.run()
    assert supplying.shop.states() == {"one": "completed"}


def test_of_two_inputs_at_once_one_begins_a_revision(supplying: Supplying) -> None:
    """Both were validated on what stood; the one that waited for the other is told that the request went on."""

    def one_of(text: str) -> int | str:
        try:
            return supplying.supply({"text": f"TOTAL {text} EUR"}).revision
        except NotPossibleNow as refused:
            return str(refused)

    with supplying.shop.connect() as other, ThreadPoolExecutor(2) as pool:
        other.execute(sa.text("select id from requests for update"))
        both = [pool.submit(one_of, text) for text in ("20.00", "21.00")]
        while supplying.shop.row(WAITING).waiting < len(both):
            time.sleep(0.02)
        other.rollback()
        answers = sorted((one.result(timeout=30) for one in both), key=str)
    assert answers[0] == 2
    assert "it is received" in str(answers[1])
    assert (supplying.shop.count("request_inputs"), supplying.shop.request("one").revision) == (1, 2)
    supplying.shop.run()
    assert len(supplying.shop.effects()) == 1
    supplying.shop.assert_ledger_intact()


WAITING = (
    "select count(*) as waiting from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
)
