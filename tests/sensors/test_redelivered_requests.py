"""Run requests that come late, twice and in another order than they were made: each effect once, each state right."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import dagster as dg
import pytest

from policies.run_tags import WHY
from tests.operator.desk import Desk
from tests.ops.passes import Shop, refund
from tests.postgres import Database
from workflow_assets.definitions import definitions

YESTERDAY, TODAY = "2026-01-04", "2026-01-05"


class Deliveries:
    """A location whose sensors ask for runs, and whoever delivers what they asked for, again and again."""

    def __init__(self, shop: Shop, instance: dg.DagsterInstance) -> None:
        self.shop = shop
        self.instance = instance
        self.asked: list[dg.RunRequest] = []
        """All that the sensors ever asked for."""

    def queue(self, day: str) -> None:
        """Three requests of a day: one that goes through, one of three actions, one that waits for a vote."""
        payloads = {
            f"small {day}": refund(order=f"A {day}"),
            f"saga {day}": refund("30.00", order=f"B {day}", say="saga"),
            f"large {day}": refund("80.00", order=f"C {day}"),
        }
        self.shop.queue(payloads)
        self.shop.execute("update requests set batch_key = :day where operation_id like '%' || :day", day=day)

    def tick(self, sensor: str) -> list[str]:
        """Let a sensor ask for runs as the daemon does; the batches it asks for."""
        loaded = definitions(self.shop.workflow)
        context = dg.build_sensor_context(instance=self.instance, definitions=loaded)
        made = loaded.get_repository_def().get_sensor_def(sensor).evaluate_tick(context).run_requests or []
        self.asked += made
        return [str(request.partition_key) for request in made]

    def deliver_alone(self, requests: Iterable[dg.RunRequest]) -> None:
        """Run what was asked for beside others; in-memory instances cannot be shared by threads."""
        with dg.DagsterInstance.ephemeral() as instance:
            self.deliver(requests, instance)

    def deliver(self, requests: Iterable[dg.RunRequest], instance: dg.DagsterInstance | None = None) -> None:
        """Run what was asked for, one after the other."""
        for request in requests:
            job = definitions(self.shop.workflow).resolve_job_def(str(request.job_name))
            result = job.execute_in_process(
                partition_key=request.partition_key, tags=request.tags, instance=instance or self.instance
            )
            assert result.success

    def assert_done_once(self, days: Sequence[str]) -> None:
        """Everything is completed, each effect once by the provider's books, nobody blamed, no ledger with a gap."""
        assert set(self.shop.states().values()) == {"completed"}
        for action, of_each_day in (("order.refund", 3), ("stock.reserve", 1), ("customer.tell", 1)):
            effects = self.shop.effects(action)
            assert len(effects) == of_each_day * len(days)
            assert sorted(self.shop.calls(action)) == effects
        assert self.shop.rows("select from requests where crash_count > 0 or attempts > 0") == []
        for self.shop.batch in days:
            self.shop.assert_ledger_intact()


@pytest.fixture
def deliveries(database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Deliveries]:
    """A location, its store and its instance."""
    monkeypatch.setenv("FAILSAFE_DATABASE_URL", database.url())
    with dg.DagsterInstance.ephemeral() as instance:
        yield Deliveries(Shop(database, tmp_path), instance)


@pytest.mark.parametrize("seed", range(3))
def test_late_twice_and_out_of_order_each_effect_happens_once(deliveries: Deliveries, seed: int) -> None:
    """New and old requests of two batches, mixed and repeated, before and after the votes they were made for."""
    rng = random.Random(seed)
    for day in (YESTERDAY, TODAY):
        deliveries.queue(day)
    assert sorted(deliveries.tick("work_due")) == [YESTERDAY, TODAY]
    deliveries.deliver(rng.choices(deliveries.asked, k=2))  # one of them may be lost until later
    assert len(deliveries.shop.effects()) in (2, 4)
    for day in (YESTERDAY, TODAY):
        if deliveries.shop.states()[f"large {day}"] == "received":
            deliveries.deliver([one for one in deliveries.asked if one.partition_key == day])
        deliveries.shop.vote(f"large {day}")
    assert sorted(deliveries.tick("approvals_landed")) == [YESTERDAY, TODAY]
    assert [one.tags[WHY] for one in deliveries.asked] == ["queued", "queued", "approval_landed", "approval_landed"]
    again = [*deliveries.asked, *rng.choices(deliveries.asked, k=3)]
    rng.shuffle(again)
    deliveries.deliver(again)
    deliveries.assert_done_once([YESTERDAY, TODAY])


def test_delivered_at_the_same_moment_they_share_the_work(deliveries: Deliveries) -> None:
    """Four runs of one batch at once, of one request and of its repetitions."""
    deliveries.queue(TODAY)
    deliveries.tick("work_due")
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(deliveries.deliver_alone, [deliveries.asked] * 4))
    deliveries.shop.vote(f"large {TODAY}")
    deliveries.tick("approvals_landed")
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(deliveries.deliver_alone, [deliveries.asked[:1], deliveries.asked[1:]] * 2))
    deliveries.assert_done_once([TODAY])


def test_redelivered_while_its_run_is_at_a_call_it_finds_nothing_to_do(deliveries: Deliveries) -> None:
    """What another run has under its lease is left alone, in the middle of an effect as well."""
    deliveries.queue(TODAY)
    deliveries.tick("work_due")
    under_way: list[str] = []

    def redeliver(key: str) -> None:
        if not under_way:
            under_way.append(key)
            with ThreadPoolExecutor(1) as pool:
                pool.submit(deliveries.deliver_alone, deliveries.asked).result()
            called = [deliveries.shop.calls(action) for action in ("order.refund", "stock.reserve", "customer.tell")]
            assert called == [[], [], []]

    deliveries.shop.hooked(before=redeliver)
    deliveries.deliver(deliveries.asked)
    deliveries.shop.hooked()
    assert len(under_way) == 1
    deliveries.shop.vote(f"large {TODAY}")
    deliveries.deliver(deliveries.asked)
    deliveries.assert_done_once([TODAY])


def test_a_request_that_comes_after_its_reason_is_gone_does_nothing(deliveries: Deliveries) -> None:
    """Asked for by an approval that was cancelled before the run came: the run is green and sends nothing."""
    deliveries.queue(TODAY)
    deliveries.tick("work_due")
    deliveries.deliver(deliveries.asked)
    deliveries.shop.vote(f"large {TODAY}")
    assert deliveries.tick("approvals_landed") == [TODAY]
    before = deliveries.shop.calls()
    Desk(deliveries.shop).cancel(f"large {TODAY}")
    deliveries.deliver(deliveries.asked[::-1])
    assert deliveries.shop.states()[f"large {TODAY}"] == "cancelled"
    assert deliveries.shop.calls() == before


def test_a_request_that_comes_before_its_vote_leaves_the_question_open(deliveries: Deliveries) -> None:
    """The first run's request, redelivered for ever, neither answers for people nor asks them twice."""
    deliveries.queue(TODAY)
    deliveries.tick("work_due")
    deliveries.deliver(deliveries.asked * 3)
    assert deliveries.shop.states()[f"large {TODAY}"] == "awaiting_approval"
    assert deliveries.shop.count("approval_requests") == 1
    assert len(deliveries.shop.effects()) == 2
