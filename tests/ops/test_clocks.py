"""A worker whose clock is wrong: nothing comes sooner, later or twice, because the database's clock decides."""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from ops.batch import WorkflowRun, open_pass
from ops.keeping import LeaseKeeper
from ops.process_batch import STEPS
from policies.errors import NotExecuted
from policies.states import State
from resources.store.claim import FIRST, claim
from resources.store.engine import Duty, close_engines, engine_for
from tests.ops import jobs
from tests.ops.passes import Shop, refund
from tests.ops.tills import HookedTill, hook
from tests.ops.workers import PATIENCE, kill

LEASE = 5.0

SUMMER_TIME = "AAA0BBB,{tomorrow}/12,{later}/12"
"""A zone that puts its clocks forward at noon tomorrow: two days from now on have 47 hours there."""


@dataclass
class Clock:
    """A process's wall clock: wrong by so many seconds, from its first call of a provider on by others, in a zone."""

    off: float = 0.0
    off_after_a_call: float = 0.0
    summer_time: bool = False

    def put_up(self) -> None:
        """Let every module of this process, and its sessions at the database, go by it."""
        clock, right, real = self, time.time, datetime

        class Wrong(datetime):
            @classmethod
            def now(cls, tz: tzinfo | None = None) -> Any:
                return real.fromtimestamp(right() + clock.off, tz)

        time.time = lambda: right() + clock.off
        for module in list(sys.modules.values()):
            if getattr(module, "datetime", None) is real:
                module.datetime = Wrong  # type: ignore[attr-defined]  # the modules that took the class for themselves
        if self.summer_time:
            os.environ["TZ"] = os.environ["PGTZ"] = summer_time()
            time.tzset()


def summer_time() -> str:
    """The zone, as of today."""
    today = datetime.now(UTC).timetuple().tm_yday - 1  # zones count days from zero
    return SUMMER_TIME.format(tomorrow=(today + 1) % 365, later=(today + 31) % 365)


def work(shop_url: str, folder: Path, batch: str, busy: str, clock: Clock) -> None:
    """One pass in a process of its own, by its own clock; the database says how long its leases last."""
    clock.put_up()

    def call(key: str) -> None:
        with engine_for(Duty.WORKER, shop_url).connect() as connection:
            left = "select extract(epoch from max(lease_until) - clock_timestamp()) from requests where id = :id"
            seconds = connection.execute(sa.text(left), {"id": key.split(":")[1]}).scalar_one()
        with (folder / "leases").open("a") as file:
            file.write(f"{seconds}\n")
        clock.off = clock.off_after_a_call
        if busy in key:
            raise NotExecuted("not now", retry_after=300)

    hook(HookedTill(file=str(folder / "till.sqlite")), "before", call)
    opened = open_pass(WorkflowRun(jobs.found_workflow(folder), shop_url, lease_seconds=LEASE), batch, "wrong clock")
    for step in STEPS:
        opened.carry_out(step)


CLOCKS = {
    "ten minutes fast": Clock(600, 600),
    "ten minutes slow": Clock(-600, -600),
    "set back at work": Clock(0, -600),
    "set forward at work": Clock(0, 600),
    "summer time begins": Clock(summer_time=True),
}


REQUEST = "update requests set {} where id = '{}'"
ASKED = "update approval_requests set {} where request_id = '{}'"


def set_up(shop: Shop, operation_id: str, values: str, statement: str = REQUEST) -> None:
    """Put a request, or what is asked of it, at a moment; even where nothing may ever change."""
    with shop.connect() as connection:
        connection.execute(sa.text("set session_replication_role = replica"))
        connection.execute(sa.text(statement.format(values, shop.request(operation_id).id)))
        connection.commit()


@pytest.mark.parametrize("clock", CLOCKS.values(), ids=CLOCKS)
def test_a_worker_with_a_wrong_clock_does_what_is_due_and_nothing_else(shop: Shop, clock: Clock) -> None:
    """Leases, waits, expiries and sweeps come when the database says, to the second, in a worker's process as it is."""
    shop.queue({name: refund("80.00", order=name) for name in ("over", "open")})
    shop.run()
    shop.queue({name: refund(order=name) for name in ("due", "busy", "later", "dead", "held")})
    shop.queue({"ask": refund("90.00", order="ask")})
    set_up(shop, "over", "opened_at = now() - interval '2 days', expires_at = now() - interval '1 second'", ASKED)
    set_up(shop, "open", "expires_at = now() + interval '5 minutes'", ASKED)
    set_up(shop, "later", "next_eligible_at = now() + interval '5 minutes'")
    set_up(shop, "dead", "lease_token = gen_random_uuid(), lease_until = now() - interval '1 second'")
    set_up(shop, "held", "lease_token = gen_random_uuid(), lease_until = now() + interval '5 minutes'")
    arguments = (shop.url, shop.folder, shop.batch, str(shop.request("busy").id), clock)
    process = multiprocessing.get_context("forkserver").Process(target=work, args=arguments)
    process.start()
    process.join(PATIENCE)
    kill(process)
    assert process.exitcode == 0
    assert shop.states() == {
        "over": "expired",
        "open": "awaiting_approval",
        "due": "completed",
        "busy": "executing",
        "later": "received",
        "dead": "completed",
        "held": "received",
        "ask": "awaiting_approval",
    }
    leases = [float(line) for line in (shop.folder / "leases").read_text().split()]
    assert len(leases) == 3
    assert all(LEASE / 2 < left <= LEASE for left in leases)
    waits = "select extract(epoch from next_eligible_at - now()) from requests where operation_id = 'busy'"
    assert 280 < shop.row(waits)[0] <= 330
    asked = shop.row(
        "select round(extract(epoch from expires_at - opened_at)) as lasts, now() - opened_at as ago"
        " from approval_requests a join requests r on r.approval_id = a.id where r.operation_id = 'ask'"
    )
    assert asked.lasts == 48 * 3600
    assert timedelta(0) <= asked.ago < timedelta(minutes=1)
    assert len(shop.effects()) == 2
    assert (shop.request("dead").crash_count, shop.request("held").crash_count) == (1, 0)
    shop.assert_ledger_intact()


@pytest.mark.parametrize("off", [-600, 600])
def test_a_lease_is_bounded_by_a_clock_that_nobody_sets(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, off: float
) -> None:
    """Setting the wall clock makes a worker neither trust its lease for longer nor give it up."""
    shop.queue({"one": refund()})
    batch = shop.open()
    lease = claim(
        batch.engine,
        workflow=shop.workflow.name,
        batch=shop.batch,
        state=State.RECEIVED,
        opened_at=batch.opened_at,
        after=FIRST,
        limit=1,
        length=timedelta(seconds=LEASE),
    )
    right = time.time
    monkeypatch.setattr(time, "time", lambda: right() + off)
    assert LEASE - 2 < lease.seconds_left() <= LEASE
    keeper = LeaseKeeper(batch, lease)
    assert keeper.holds(lease.requests[0].id, LEASE - 2)
    assert not keeper.holds(lease.requests[0].id, LEASE)


def test_days_have_24_hours_whatever_the_zone_of_the_server(shop: Shop) -> None:
    """An approval of two days lasts 48 hours, though the server's own zone changes its clocks meanwhile."""
    shop.execute(f"alter database {shop.database_name} set timezone = '{summer_time()}'")
    close_engines()
    shop.queue({"one": refund("80.00")})
    shop.run()
    assert shop.row("select round(extract(epoch from expires_at - opened_at)) from approval_requests")[0] == 48 * 3600
