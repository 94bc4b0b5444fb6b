"""The checks for who is on call: work that does not move, and effects of which nobody knows what became."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar

import dagster as dg
import pytest
import sqlalchemy as sa

from ops.assess import assess
from ops.execute import execute
from ops.extract import extract
from ops.validate import validate
from policies.outcomes import Semantics
from policies.records import Record
from resources.records import Records
from resources.store.pauses import Scope
from resources.store.reading import reading
from resources.store.stuck import LastingUnknown, lasting_unknowns, stuck_work
from tests.operator.desk import Desk
from tests.ops import toy
from tests.ops.passes import Shop, refund
from tests.ops.tills import HookedTill
from tests.postgres import Database
from workflow_assets.definitions import definitions

REQUESTS = dg.AssetKey(["refunds", "request_batch"])


class Away(Records):
    """A service that does not answer."""

    def find(self, key: str) -> Record | None:
        raise ConnectionError(key)


@pytest.fixture
def shop(database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """A shop whose store the location finds."""
    monkeypatch.setenv("FAILSAFE_DATABASE_URL", database.url())
    return Shop(database, tmp_path)


@pytest.fixture
def desk(shop: Shop) -> Desk:
    """Its operator."""
    return Desk(shop)


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    """A Dagster instance."""
    with dg.DagsterInstance.ephemeral() as made:
        yield made


def stuck(shop: Shop, lease_seconds: float = 30) -> list[tuple[str, str, int, list[str]]]:
    """What does not move, as the auditor sees it, without how long."""
    with reading(shop.url, seconds=60) as connection:
        found = stuck_work(connection, "refunds", shop.batch, lease_seconds)
    return [(one.why.value, one.reason, one.requests, one.oldest) for one in found]


def unknowns(shop: Shop) -> Sequence[LastingUnknown]:
    """What nobody knows, as the auditor sees it."""
    with reading(shop.url, seconds=60) as connection:
        return lasting_unknowns(connection, shop.workflow, shop.batch)


def let_pass(shop: Shop, time: str) -> None:
    """Move all that is stored so far into the past, the ledger included, as only a superuser can."""
    ago = f"- interval '{time}'"
    with shop.connect() as connection:
        connection.execute(sa.text("set session_replication_role = replica"))
        for statement in (
            f"update requests set next_eligible_at = next_eligible_at {ago}, retry_until = retry_until {ago}",
            f"update requests set lease_until = lease_until {ago}",
            f"update effects set started_at = started_at {ago}, first_sent_at = first_sent_at {ago}",
            f"update approval_requests set opened_at = opened_at {ago}, expires_at = expires_at {ago}",
            f"update batch_runs set beat_at = beat_at {ago}",
            f"update audit_events set at = utc_text(cast(at as timestamptz) {ago})",
        ):
            connection.execute(sa.text(statement))
        connection.commit()


def look(shop: Shop, instance: dg.DagsterInstance, check: str) -> dg.AssetCheckEvaluation:
    """Evaluate a check of the location, as a person or a schedule asks for it."""
    job = definitions(shop.workflow).get_repository_def().get_implicit_global_asset_job_def()
    asked = job.get_subset(asset_check_selection={dg.AssetCheckKey(REQUESTS, check)})
    result = asked.execute_in_process(partition_key=shop.batch, instance=instance)
    (found,) = result.get_asset_check_evaluations()
    return found


def by_reason(found: dg.AssetCheckEvaluation) -> list[dict[str, Any]]:
    """The rows of a check's table."""
    table = found.metadata["by_reason"]
    assert isinstance(table, dg.TableMetadataValue)
    return [dict(record.data) for record in table.records]


def test_a_request_that_no_run_takes_up_is_named_with_a_remedy(shop: Shop, instance: dg.DagsterInstance) -> None:
    """A warning that says how many, how old, which and what to do; the run that takes it up ends it."""
    shop.queue({"one": refund(), "two": refund(order="A2")})
    assert look(shop, instance, "no_stuck_work").passed
    let_pass(shop, "2 hours")
    found = look(shop, instance, "no_stuck_work")
    assert (found.passed, found.severity) == (False, dg.AssetCheckSeverity.WARN)
    assert {name: found.metadata[name].value for name in ("requests", "oldest_hours")} == {
        "requests": 2,
        "oldest_hours": 2.0,
    }
    (row,) = by_reason(found)
    assert (row["why"], row["requests"], set(row["oldest"].split(", "))) == ("untouched", 2, {"one", "two"})
    assert "daemon" in row["remedy"]
    assert str(found.description).startswith("2 requests, the oldest for 2 h: untouched (")
    shop.run()
    assert look(shop, instance, "no_stuck_work").passed


def waits_for_a_vote(shop: Shop) -> None:
    """A person has days left to answer."""
    shop.queue({"one": refund("80.00")})
    shop.run()


def waits_for_a_clerk(shop: Shop) -> None:
    """The model abstained."""
    shop.queue({"one": refund(say="abstain")})
    shop.run()


def is_done(shop: Shop) -> None:
    """Nothing is left to do."""
    shop.queue({"one": refund()})
    shop.run()


def comes_back_later(shop: Shop) -> None:
    """Its provider said to come back tomorrow."""
    is_received(shop)
    shop.execute("update requests set attempts = 1, retry_until = now() + interval '1 day', reason = 'busy: 429'")
    shop.execute("update requests set next_eligible_at = now() + interval '20 hours'")


def is_received(shop: Shop) -> None:
    """It was due only for some minutes."""
    shop.queue({"one": refund()})


def is_leased(shop: Shop) -> None:
    """A worker has it."""
    is_received(shop)
    shop.execute("update requests set lease_token = gen_random_uuid(), lease_until = now() + interval '3 hours'")


@pytest.mark.parametrize(
    ("situation", "time"),
    [
        (waits_for_a_vote, "3 hours"),
        (waits_for_a_clerk, "3 hours"),
        (is_done, "3 hours"),
        (comes_back_later, "3 hours"),
        (is_received, "14 minutes"),
        (is_leased, "3 hours"),
    ],
)
def test_what_waits_for_its_time_or_for_a_person_is_not_stuck(
    shop: Shop, situation: Callable[[Shop], None], time: str
) -> None:
    """However long it has been so."""
    situation(shop)
    let_pass(shop, time)
    assert stuck(shop) == []


def test_an_approval_that_ran_out_unnoticed_is_stuck(shop: Shop) -> None:
    """Nobody waits for a vote any more, and no run has said so."""
    waits_for_a_vote(shop)
    let_pass(shop, "3 days")
    assert stuck(shop) == [("untouched", "", 1, ["one"])]


def test_a_lease_of_a_dead_worker_that_nobody_takes_back_is_stuck(shop: Shop) -> None:
    """It is told apart from work that nobody took; a run takes it back."""
    is_leased(shop)
    let_pass(shop, "3 hours 20 minutes")
    assert stuck(shop) == [("lease_overdue", "", 1, ["one"])]
    shop.run()
    assert stuck(shop) == []


def test_patience_is_measured_in_leases_where_they_are_long(shop: Shop) -> None:
    """Ten of them: with leases of ten minutes, work that was due 20 minutes ago is no news."""
    is_received(shop)
    let_pass(shop, "20 minutes")
    assert stuck(shop, lease_seconds=600) == []
    assert stuck(shop, lease_seconds=100) == [("untouched", "", 1, ["one"])]


def test_a_backlog_that_runs_work_off_is_not_stuck_until_an_hour(shop: Shop) -> None:
    """A hundred thousand requests take their time; yet none is passed by for ever."""
    is_done(shop)
    shop.execute("update batch_runs set moved = 1")
    let_pass(shop, "10 minutes")
    shop.queue({"two": refund(order="A2")})
    shop.execute("update requests set next_eligible_at = now() - interval '50 minutes' where operation_id = 'two'")
    assert stuck(shop) == []
    shop.execute("update requests set next_eligible_at = now() - interval '61 minutes' where operation_id = 'two'")
    assert stuck(shop) == [("untouched", "", 1, ["two"])]


def test_a_row_that_a_forgotten_session_holds_is_passed_by_and_shows(shop: Shop) -> None:
    """Runs do not wait for it: the others are done; it is named, and done once the session has ended."""
    shop.queue({"held": refund(), "free": refund(order="A2")})
    with shop.connect() as forgotten:
        forgotten.execute(sa.text("select from requests where operation_id = 'held' for update"))
        shop.run()
        assert shop.states() == {"held": "received", "free": "completed"}
        let_pass_for = (
            "update requests set next_eligible_at = next_eligible_at - interval '2 hours' where closed_at is null"
        )
        forgotten.execute(sa.text(let_pass_for))
        forgotten.commit()
        forgotten.execute(sa.text("select from requests where operation_id = 'held' for update"))
        shop.run()
        assert stuck(shop) == [("untouched", "", 1, ["held"])]
    shop.run()
    assert stuck(shop) == []
    assert len(shop.calls()) == len(shop.effects()) == 2


def test_what_a_pause_holds_for_an_hour_is_named_by_the_run_itself(
    shop: Shop, desk: Desk, instance: dg.DagsterInstance
) -> None:
    """Runs put it off again and again, whatever failed before: the reason is the pause, the remedy to lift it."""
    shop.queue({"one": refund()})
    shop.run()
    shop.queue({"two": refund(order="A2")})
    desk.pause(Scope.WORKFLOW, "refunds")
    shop.run()
    shop.execute("update requests set retry_until = now() + interval '1 day' where operation_id = 'two'")
    assert stuck(shop) == []
    let_pass(shop, "61 minutes")
    job = definitions(shop.workflow).resolve_job_def("refunds_process_batch")
    result = job.execute_in_process(partition_key=shop.batch, instance=instance)
    (found,) = [one for one in result.get_asset_check_evaluations() if one.check_name == "no_stuck_work"]
    (row,) = by_reason(found)
    assert (found.passed, row["why"], row["oldest"]) == (False, "not started: paused", "two")
    assert "failsafe resume" in row["remedy"]
    desk.resume(Scope.WORKFLOW, "refunds")
    shop.run()
    assert stuck(shop) == []
    assert shop.states()["two"] == "completed"


@pytest.mark.parametrize("undone", [False, True])
def test_an_open_breaker_is_named_after_an_hour(shop: Shop, desk: Desk, undone: bool) -> None:
    """Forwards and backwards; a reason that lasts less is none to call anybody."""
    shop.queue({"one": refund(say="saga")})
    shop.run(extract)
    desk.pause(Scope.ACTION_TYPE, "order.refund")
    shop.run()
    if undone:
        desk.cancel("one")
    desk.resume(Scope.ACTION_TYPE, "order.refund")
    shop.execute("update providers set open_until = now() + interval '3 days'")
    shop.run_again()
    let_pass(shop, "50 minutes")
    shop.run_again()
    assert stuck(shop) == []
    let_pass(shop, "11 minutes")
    shop.run_again()
    assert stuck(shop) == [("held", "not started: breaker_open", 1, ["one"])]
    shop.execute("update providers set open_until = null")
    shop.run_again()
    assert (stuck(shop), shop.states()) == ([], {"one": "compensated" if undone else "completed"})


def test_a_service_that_stays_away_is_named_after_an_hour(shop: Shop) -> None:
    """Records that cannot be read use up no attempt, so nothing else would ever call anybody."""
    shop.queue({"one": refund()})
    shop.run(extract, validate, assess)
    shop.execute("update requests set rechecked_until = null")
    records = shop.workflow.records
    shop.define(records={"orders": Away()})
    shop.run(execute)
    let_pass(shop, "61 minutes")
    shop.run_again()
    assert stuck(shop) == [("held", "a record look-up failed: ConnectionError", 1, ["one"])]
    shop.define(records=records)
    shop.run_again()
    assert (stuck(shop), shop.states()) == ([], {"one": "completed"})


def test_only_the_batch_that_is_asked_about_is_looked_at(shop: Shop) -> None:
    """Neither another day nor another workflow turns a check red."""
    shop.queue({"one": refund()})
    let_pass(shop, "2 hours")
    with reading(shop.url, seconds=60) as connection:
        assert stuck_work(connection, "refunds", "2026-01-02", 30) == []
        assert stuck_work(connection, "returns", shop.batch, 30) == []


def with_a_deaf_look_up(shop: Shop) -> None:
    """A refund was sent, its answer lost, and the look-up fails."""
    shop.hooked(look_up=deaf)
    toy.set_mood(shop.till, "lose the answer")
    shop.queue({"one": refund()})
    shop.run()


def deaf(_key: str) -> None:
    """A look-up that says nothing."""
    raise ConnectionError("no answer")


def test_an_effect_that_is_unknown_for_long_is_an_error(shop: Shop, instance: dg.DagsterInstance) -> None:
    """With its key, provider and age; not before an hour, for a look-up may lag; and it is no stuck work besides."""
    with_a_deaf_look_up(shop)
    assert look(shop, instance, "no_unreconciled_unknown").passed
    let_pass(shop, "90 minutes")
    shop.execute("update requests set next_eligible_at = now(), retry_until = null")
    found = look(shop, instance, "no_unreconciled_unknown")
    assert (found.passed, found.severity) == (False, dg.AssetCheckSeverity.ERROR)
    assert (found.metadata["effects"].value, found.metadata["oldest_hours"].value) == (1, 1.5)
    (row,) = by_reason(found)
    (key,) = shop.effects()
    assert (row["why"], row["oldest"]) == ("HookedTill: waits for a look-up", key)
    assert "failsafe unknown list" in row["remedy"]
    assert stuck(shop) == []
    shop.hooked()
    toy.set_mood(shop.till, None)
    shop.run_again()
    assert look(shop, instance, "no_unreconciled_unknown").passed
    assert shop.states() == {"one": "completed"}


class SlowToShow(HookedTill):
    """A till that shows an effect within an hour of it."""

    semantics: ClassVar[Semantics] = replace(HookedTill.semantics, visible_after=timedelta(hours=1))


def test_a_provider_that_shows_its_effects_late_is_given_that_time(shop: Shop) -> None:
    """What may still show is not yet a reason to call anybody."""
    with_a_deaf_look_up(shop)
    shop.hooked(SlowToShow)
    let_pass(shop, "119 minutes")
    assert unknowns(shop) == []
    let_pass(shop, "2 minutes")
    assert len(unknowns(shop)) == 1


def test_an_unknown_effect_in_a_persons_hands_stays_an_error_until_they_answer(shop: Shop, desk: Desk) -> None:
    """Its look-ups are used up and it is parked: still nobody knows, and the remedy is theirs."""
    with_a_deaf_look_up(shop)
    shop.run_again(10)
    assert shop.states() == {"one": "dead_lettered"}
    assert unknowns(shop) == []
    let_pass(shop, "90 minutes")
    (found,) = unknowns(shop)
    assert (found.waits_for, found.effects) == ("person", 1)
    desk.resolve(found.oldest[0], done=True)
    assert unknowns(shop) == []


def test_five_are_named_and_all_are_counted(shop: Shop) -> None:
    """The oldest first."""
    shop.queue({f"order-{number}": refund(order=f"A{number}") for number in range(7)})
    shop.execute(
        "update requests set next_eligible_at = now() - interval '3 hours'"
        " - substr(operation_id, 7)::integer * interval '1 minute'"
    )
    assert stuck(shop) == [("untouched", "", 7, [f"order-{number}" for number in (6, 5, 4, 3, 2)])]
