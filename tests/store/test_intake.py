"""Rows go in once, whole and by an authenticated principal; one that is wrong is named and stops no other."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import dagster as dg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.batches import BatchWindows, daily
from policies.errors import NotAuthenticated, OperationConflict, RequestRefused, SchemaMismatch
from resources.store.intake import Submission, submit, submit_rows
from resources.store.principals import disable_principal
from resources.store.rows import AcceptableRow, RowProblem, check_row
from resources.workflow import Workflow
from tests.postgres import Database
from tests.store.requests import Person, Superuser
from tests.store.workflow import RefundRequest, refunds


def row(operation_id: str = "order-1", *, amount: str = "20.00 EUR", **more: Any) -> dict[str, Any]:
    """A row that fits the workflow."""
    return {"operation_id": operation_id, "payload": {"order_id": operation_id, "amount": amount}, **more}


class Counter:
    """Submits as the intake role does, and counts what the store then holds."""

    def __init__(self, database: Database, superuser: Superuser) -> None:
        self.url = database.url("failsafe_intake")
        self.superuser = superuser
        self.clerk = superuser.person("clerk", ["clerk"])

    def submit(self, *rows: Any, workflow: Workflow = refunds, by: Person | None = None) -> Submission:
        """Submit rows as a principal, by default the clerk."""
        token = (by or self.clerk).token
        return submit_rows(rows, workflow=workflow, principal=token, database_url=self.url)

    def stored(self) -> int:
        """How many requests there are."""
        count = self.superuser.value("select count(*) from requests")
        assert isinstance(count, int)
        return count


@pytest.fixture
def counter(database: Database, superuser: Superuser) -> Counter:
    """Where rows are handed in."""
    return Counter(database, superuser)


def test_a_row_is_stored_whole_and_acknowledged(counter: Counter, superuser: Superuser) -> None:
    """Payload, initiator, roles at the time, subject, version and batch are kept, and the ledger says received."""
    [receipt] = counter.submit(row(subject="E7")).receipts
    with superuser.engine.connect() as connection:
        kept = connection.exec_driver_sql("select * from requests").one()
        told = connection.exec_driver_sql("select stream, type, actor from audit_events where stream <> 'system'").one()
    assert (kept.id, kept.batch_key, kept.received_at) == (receipt.request_id, receipt.batch_key, receipt.received_at)
    assert (kept.workflow, kept.workflow_version, kept.subject, kept.state) == ("refunds", "1", "E7", "received")
    assert kept.initiator == counter.clerk.id
    assert kept.authorization_context == {"roles": ["clerk"], "name": "clerk"}
    assert json.loads(kept.payload) == row()["payload"]
    assert receipt.batch_key == kept.received_at.astimezone(UTC).strftime("%Y-%m-%d")
    assert not receipt.replayed
    assert told == (f"request:{kept.id}", "request.received", f"principal:{counter.clerk.id}")


def test_a_payload_of_bytes_is_stored_as_received(counter: Counter, superuser: Superuser) -> None:
    """White space, key order and escapes stay as they came."""
    payload = b'{ "amount":"20.00 EUR",\n "order_id": "\\u0031", "message": "a\\u0000b" }'
    assert counter.submit(row(payload=payload)).problems == []
    assert superuser.value("select payload from requests") == payload


def test_the_same_row_again_returns_the_first_receipt(counter: Counter, superuser: Superuser) -> None:
    """A replay is marked, stores nothing and is no event, however the same payload is written."""
    [first] = counter.submit(row()).receipts
    events = superuser.value("select count(*) from audit_events")
    again = {"amount": "20.00 EUR", "order_id": "order-1"}
    for payload in (again, json.dumps(again, indent=2).encode()):
        [receipt] = counter.submit(row(payload=payload)).receipts
        assert receipt == replace(first, replayed=True)
    assert counter.stored() == 1
    assert superuser.value("select count(*) from audit_events") == events


def test_another_subject_under_the_same_id_conflicts(counter: Counter) -> None:
    """On whose behalf it is belongs to a request as much as its payload does."""
    counter.submit(row(subject="E7"))
    for subject in ("E8", None):
        [problem] = counter.submit(row() if subject is None else row(subject=subject)).problems
        assert (problem.field, problem.conflict) == ("operation_id", True)
    [again] = counter.submit(row(subject="E7")).receipts
    assert again.replayed


def test_another_payload_under_the_same_id_conflicts(counter: Counter, superuser: Superuser) -> None:
    """Nothing is stored or changed, the attempt stands in the first request's ledger, and the other rows go in."""
    [first] = counter.submit(row()).receipts
    submission = counter.submit(row(amount="99.00 EUR"), row("order-2"))
    assert [receipt.operation_id for receipt in submission.receipts] == ["order-2"]
    [problem] = submission.problems
    assert (problem.row, problem.field, problem.conflict) == (1, "operation_id", True)
    assert counter.stored() == 2
    assert (
        superuser.value("select payload from requests where id = :id", id=first.request_id)
        == json.dumps(row()["payload"], separators=(",", ":")).encode()
    )
    attempts = "select count(*) from audit_events where type = 'request.conflict' and stream = :stream"
    assert superuser.value(attempts, stream=f"request:{first.request_id}") == 1
    with pytest.raises(OperationConflict, match="1 of 2 rows were refused"):
        submission.raise_for_problems()


def test_one_submission_may_repeat_or_contradict_itself(counter: Counter) -> None:
    """Within one chunk the first row with an id wins: the same again is a replay, another payload a conflict."""
    submission = counter.submit(row(), row(), row(amount="1.00 EUR"))
    assert [receipt.replayed for receipt in submission.receipts] == [False, True]
    assert [problem.conflict for problem in submission.problems] == [True]
    assert counter.stored() == 1


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        (row(operation_id=""), "operation_id"),
        (row(operation_id="x" * 256), "operation_id"),
        (row(operation_id="a\x00b"), "operation_id"),
        (row(operation_id="a\nb"), "operation_id"),
        ({**row(), "operation_id": "a\ud800"}, "operation_id"),
        ({"operation_id": 7, "payload": {"order_id": "1", "amount": "1.00 EUR"}}, "operation_id"),
        ({"payload": {"order_id": "1", "amount": "1.00 EUR"}}, "operation_id"),
        (row(subject="x\x00"), "subject"),
        (row(subject="x" * 201), "subject"),
        (row(subject=7), "subject"),
        (row(priority=1), "priority"),
        ({"operation_id": "1"}, "payload"),
        (row(payload="text"), "payload"),
        (row(payload=[1]), "payload"),
        (row(payload=b"{"), "payload"),
        (row(payload=b"[]"), "payload"),
        (row(payload=b'"\xff"'), "payload"),
        (row(payload=b'{"order_id": "1", "order_id": "2", "amount": "1.00 EUR"}'), "payload"),
        (row(payload={"order_id": "1", "amount": float("nan")}), "payload"),
        (row(payload={"order_id": "1", "amount": 2**60}), "payload"),
        (row(payload={"order_id": "\ud800", "amount": "1"}), "payload"),
        (row(payload={"order_id": "1", "amount": object()}), "payload"),
        (row(payload={"order_id": "1", "amount": "1", "message": "x" * 1_100_000}), "payload"),
        (row(payload={"order_id": "1"}), "payload.amount"),
        (row(payload={"order_id": [], "amount": "1.00 EUR"}), "payload.order_id"),
        (row(payload={"order_id": "1", "amount": "1.00 EUR", "approved": True}), "payload.approved"),
    ],
)
def test_a_wrong_row_is_named_and_stops_no_other(counter: Counter, wrong: dict[str, Any], field: str) -> None:
    """Its number, field and reason are told, the row is handed back, and its neighbours go in."""
    submission = counter.submit(row("before"), wrong, row("after"))
    assert [receipt.operation_id for receipt in submission.receipts] == ["after", "before"]
    assert {(problem.row, problem.field) for problem in submission.problems} == {(2, field)}
    assert submission.problems[0].received == wrong
    assert submission.problems[0].reason
    assert counter.stored() == 2
    with pytest.raises(RequestRefused, match=r"1 of 3 rows were refused, the others are in; first, row 2"):
        submission.raise_for_problems()


def test_every_problem_of_a_row_is_told(counter: Counter) -> None:
    """All of them at once, so that a row is corrected once."""
    submission = counter.submit({"operation_id": "", "subject": "\x00", "payload": {"amount": 1}, "extra": 1})
    fields = {problem.field for problem in submission.problems}
    assert fields == {"operation_id", "subject", "payload.order_id", "payload.amount", "extra"}


def test_a_row_that_only_the_database_refuses_stands_alone(counter: Counter, superuser: Superuser) -> None:
    """Halving finds the one bad row in a chunk, whatever the reason, and the others go in."""
    superuser.run("alter table requests add constraint never_13 check (operation_id <> 'order-13')")
    submission = counter.submit(*(row(f"order-{number}") for number in range(40)))
    [problem] = submission.problems
    assert (problem.row, problem.conflict) == (14, False)
    assert "never_13" in problem.reason
    assert len(submission.receipts) == counter.stored() == 39


def test_values_of_table_rows_become_json(counter: Counter, superuser: Superuser) -> None:
    """Dates and decimals of a data frame's rows are stored as text."""
    day = datetime(2026, 11, 29, tzinfo=UTC)
    submission = counter.submit(row(payload={"order_id": day, "amount": Decimal("20.50")}))
    assert submission.problems == []
    kept = superuser.value("select convert_from(payload, 'UTF8') from requests")
    assert json.loads(str(kept)) == {"order_id": "2026-11-29T00:00:00Z", "amount": "20.50"}


def test_nothing_goes_in_without_a_credential(counter: Counter, database: Database, superuser: Superuser) -> None:
    """An unknown token and a disabled principal's are refused alike; nothing is left behind, not even the workflow."""
    superuser.run("delete from workflows")
    stranger = Person(counter.clerk.id, "clerk", "fst_unknown")
    left = superuser.person("left")
    disable_principal(database.url("failsafe_operator"), "left")
    for person in (stranger, left):
        with pytest.raises(NotAuthenticated):
            counter.submit(row(), row("order-2"), by=person)
    assert counter.stored() == 0
    assert superuser.value("select count(*) from workflows") == 0


def test_the_token_may_be_named_by_its_variable(counter: Counter, monkeypatch: pytest.MonkeyPatch) -> None:
    """`dg.EnvVar` is read at the call; an unset variable is said by its name."""
    principal = dg.EnvVar("REFUNDS_TOKEN")
    with pytest.raises(NotAuthenticated, match="REFUNDS_TOKEN"):
        submit_rows([row()], workflow=refunds, principal=principal, database_url=counter.url)
    monkeypatch.setenv("REFUNDS_TOKEN", counter.clerk.token)
    assert submit_rows([row()], workflow=refunds, principal=principal, database_url=counter.url).problems == []


def test_the_window_rule_is_fixed_by_the_first_request(counter: Counter, superuser: Superuser) -> None:
    """Another zone, kind or a later start is refused; an earlier start is taken over."""
    counter.submit(row())
    for changed in (
        daily("2026-01-01", "Asia/Tokyo"),
        BatchWindows("hour", "UTC", date(2026, 1, 1)),
        daily("2026-02-01"),
    ):
        with pytest.raises(OperationConflict, match="window rule"):
            counter.submit(row("order-2"), workflow=replace(refunds, batches=changed))
    counter.submit(row("order-2"), workflow=replace(refunds, batches=daily("2025-12-01")))
    assert superuser.value("select since from workflows") == date(2025, 12, 1)
    assert counter.stored() == 2


def test_a_database_of_another_version_is_left_alone(counter: Counter, superuser: Superuser) -> None:
    """Intake stops loudly on a schema revision that it does not know."""
    superuser.run("update schema_revision set version_num = '9999'")
    with pytest.raises(SchemaMismatch, match="9999"):
        counter.submit(row())


def test_chunks_are_told_once_they_are_in(counter: Counter) -> None:
    """Progress comes after each commit, so what it says is true whatever happens next."""
    seen: list[tuple[int, int]] = []

    def progress(part: Submission) -> None:
        seen.append((len(part.receipts) + len(part.problems), counter.stored()))

    rows = [(number, row(f"order-{number}")) for number in range(7)]
    submit(rows, workflow=refunds, token=counter.clerk.token, database_url=counter.url, chunk=3, progress=progress)
    assert seen == [(3, 3), (3, 6), (1, 7)]


def test_a_row_that_could_not_be_read_passes_through(counter: Counter) -> None:
    """What a reader reports comes out among the problems, in its place."""
    unreadable = RowProblem(2, "", "is not JSON", "{")
    rows: list[tuple[int, Any]] = [(1, row()), (2, unreadable), (3, row("order-3", amount=7))]  # type: ignore[arg-type]
    submission = submit(rows, workflow=refunds, token=counter.clerk.token, database_url=counter.url)
    assert [problem.row for problem in submission.problems] == [2, 3]
    assert submission.problems[0] is unreadable


def test_overlapping_submissions_at_once_store_each_row_once(counter: Counter) -> None:
    """Four callers with the same rows in different orders: every row is accepted by one and a replay for the others."""
    orders = [list(range(300)), list(range(299, -1, -1)), [*range(150, 300), *range(150)], list(range(0, 300, 2))]
    outcomes: list[Submission] = []
    errors: list[BaseException] = []

    def hand_in(numbers: list[int]) -> None:
        try:
            outcomes.append(counter.submit(*(row(f"order-{number}") for number in numbers)))
        except BaseException as error:
            errors.append(error)
            raise

    threads = [threading.Thread(target=hand_in, args=(numbers,)) for numbers in orders]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    accepted = [one.operation_id for outcome in outcomes for one in outcome.receipts if not one.replayed]
    assert sorted(accepted) == sorted(f"order-{number}" for number in range(300))
    assert counter.stored() == 300


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.dates() | st.decimals(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["operation_id", "subject", "payload", "more"]) | st.text(), ANYTHING))
def test_no_row_makes_the_check_raise(received: dict[str, Any]) -> None:
    """Whatever arrives is either acceptable or a list of problems with their reasons."""
    checked = check_row(3, received, RefundRequest)
    if isinstance(checked, AcceptableRow):
        assert checked.operation_id == received["operation_id"]
    else:
        assert checked
        assert all(problem.row == 3 and problem.reason for problem in checked)
