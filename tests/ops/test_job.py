"""The job through Dagster: begun at any op, failed at any op, it ends where a whole run ends and repeats nothing."""

from __future__ import annotations

from collections.abc import Iterator

import dagster as dg
import pytest

from ops.process_batch import process_batch
from tests.ops import jobs, toy
from tests.ops.passes import Payload, Shop, refund

OPS = [node.name for node in process_batch.nodes_in_topological_order]

WAITING: dict[str, Payload] = {
    "approved": refund("80.00", "B1"),
    "lost": refund("20.00", "B2"),
}
"""What an earlier run left: one that a lead has approved since, one whose provider's answer was lost."""

NEW: dict[str, Payload] = {
    "small": refund("20.00", "B3"),
    "large": refund("80.00", "B4"),
    "huge": refund("800.00", "B5"),
    "unsure": refund(say="abstain"),
    "saga": refund("30.00", "B6", say="saga"),
}

ENDS = {
    "approved": "completed",
    "lost": "completed",
    "small": "completed",
    "large": "awaiting_approval",
    "huge": "rejected",
    "unsure": "needs_review",
    "saga": "completed",
}
"""Where a whole run ends."""

PAID = ("approved", "lost", "small", "saga")


@pytest.fixture
def shop(shared_shop: Shop) -> Shop:
    """Each test has requests of its own in it."""
    return shared_shop


@pytest.fixture
def instance(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Iterator[dg.DagsterInstance]:
    """A Dagster instance, with the shop in the environment."""
    for name, value in jobs.environment(shop).items():
        monkeypatch.setenv(name, value)
    with dg.DagsterInstance.ephemeral() as instance:
        yield instance


def waiting_work(shop: Shop, name: str) -> None:
    """Requests of every kind that a run can find, their operation ids ending with `name`."""
    shop.queue({f"{key} {name}": payload for key, payload in WAITING.items()})
    toy.set_mood(shop.till, "lose the answer")
    shop.run()
    toy.set_mood(shop.till, None)
    shop.vote(f"approved {name}")
    shop.age_effects()
    toy.make_due(shop.url)
    shop.queue({f"{key} {name}": payload for key, payload in NEW.items()})


def assert_ended(shop: Shop, name: str) -> None:
    """Every request ended where a whole run ends, and each payment reached the provider once."""
    states = shop.states()
    assert {key: states[f"{key} {name}"] for key in ENDS} == ENDS
    ids = {str(shop.request(f"{key} {name}").id) for key in ENDS}
    paid = {str(shop.request(f"{key} {name}").id) for key in PAID}
    assert sorted(key.split(":")[1] for key in shop.calls() if key.split(":")[1] in ids) == sorted(paid)
    shop.assert_ledger_intact()


def test_a_whole_run_ends_every_request_where_its_policy_says(shop: Shop, instance: dg.DagsterInstance) -> None:
    """The run every other one is compared with; a second one finds nothing to do."""
    waiting_work(shop, "whole")
    for _ in range(2):
        assert jobs.toy_job().execute_in_process(partition_key=shop.batch, instance=instance).success
        assert_ended(shop, "whole")


@pytest.mark.parametrize("op", OPS)
def test_a_run_begun_at_any_op_ends_where_a_whole_run_ends(shop: Shop, instance: dg.DagsterInstance, op: str) -> None:
    """A step subset leaves nothing behind: its last op repeats the pass until nothing is due."""
    waiting_work(shop, op)
    subset = jobs.toy_job().execute_in_process(partition_key=shop.batch, instance=instance, op_selection=[f"{op}*"])
    assert subset.success
    assert_ended(shop, op)


FAILING = """
create function fail_once() returns trigger language plpgsql security definer set search_path = failsafe as $$
begin
    if nextval('steps_begun') = {at} then
        raise exception 'the database went away' using errcode = '57P01';
    end if;
    return new;
end $$;
create sequence steps_begun;
create trigger fail_once before insert on batch_runs for each row execute function fail_once();
"""
"""Every op begins with one insert here, so the op in this place fails as it would in an outage."""

MENDED = "drop trigger fail_once on batch_runs; drop function fail_once; drop sequence steps_begun;"


@pytest.mark.parametrize("op", ["reconcile", "extract", "assess", "execute", "close_batch"])
def test_a_run_that_failed_goes_on_from_its_failure(shop: Shop, instance: dg.DagsterInstance, op: str) -> None:
    """Re-executed from the op that failed, in a run of its own, it ends where a whole run ends."""
    name = f"{op} failed"
    waiting_work(shop, name)
    job = dg.reconstructable(jobs.toy_job)
    tags = {"dagster/partition": shop.batch}
    shop.execute(FAILING.format(at=OPS.index(op) + 1))
    try:
        failed = dg.execute_job(job, instance=instance, tags=tags)
    finally:
        shop.execute(MENDED)
    assert failed.get_failed_step_keys() == {op}
    again = dg.ReexecutionOptions.from_failure(failed.run_id, instance)
    assert dg.execute_job(job, instance=instance, tags=tags, reexecution_options=again).success
    assert_ended(shop, name)
