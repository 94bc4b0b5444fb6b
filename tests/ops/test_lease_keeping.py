"""A worker that makes progress keeps its lease, however slow the other side is; it never sends on one that may end."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any, ClassVar

import pytest
import sqlalchemy as sa

from ops import sending
from ops.assess import assess
from ops.batch import WorkflowRun
from ops.execute import execute
from ops.extract import extract
from ops.validate import validate
from policies.errors import DefinitionError
from policies.outcomes import Semantics
from policies.records import Record
from resources.store.effects import sweep_leases
from resources.store.engine import Duty, engine_for
from tests.ops import toy
from tests.ops.passes import Shop, refund
from tests.ops.tills import HookedTill


def sweep(shop: Shop) -> int:
    """What another run of the batch does first."""
    with engine_for(Duty.WORKER, shop.url).begin() as connection:
        return sweep_leases(connection, shop.workflow.name, shop.batch, 100)


class QuickTill(HookedTill):
    """A till that never takes long, so that short leases do."""

    semantics: ClassVar[Semantics] = replace(toy.Till.semantics, timeout=timedelta(seconds=0.1))


class Slow:
    """Something that takes longer than a lease, during which another run sweeps."""

    def __init__(self, shop: Shop) -> None:
        self.shop = shop
        self.swept: list[int] = []

    def take_long(self) -> None:
        """Outlast the lease."""
        time.sleep(1.3)
        self.swept.append(sweep(self.shop))


def test_a_model_slower_than_a_lease_is_no_crash(shop: Shop) -> None:
    """The lease is renewed while one call is out, so nobody takes the request away from a worker that waits."""
    slow = Slow(shop)

    def model(request: toy.RefundRequest) -> Any:
        slow.take_long()
        return toy.toy_model(request)

    shop.lease_seconds = 1.1
    shop.use(QuickTill(file=str(shop.till)))
    shop.define(extractor=model)
    shop.queue({"one": refund()})
    shop.run()
    assert slow.swept == [0]
    assert shop.states() == {"one": "completed"}
    assert shop.request("one").crash_count == 0


@pytest.fixture
def slow_calls(shop: Shop) -> list[str]:
    """Twelve requests that wait for a till which takes 0.15 s a call; the keys of the calls as they begin."""
    keys: list[str] = []

    def take_a_moment(key: str) -> None:
        keys.append(key)
        time.sleep(0.15)

    shop.hooked(QuickTill, before=take_a_moment)
    shop.queue({f"r{number}": refund(order=f"A{number}") for number in range(12)})
    shop.run(extract, validate, assess)
    return keys


def finish(shop: Shop) -> None:
    """Run until nothing is left to send."""
    while set(shop.states().values()) != {"completed"}:
        shop.run(execute)


def test_nothing_is_sent_unless_the_lease_outlasts_the_call(shop: Shop, slow_calls: list[str]) -> None:
    """While the lease cannot be renewed, calls go on only as long as each would end within it."""
    shop.lease_seconds = 1.1
    locked = threading.Event()

    def lock_out() -> None:
        """Keep the worker from renewing for longer than all calls would take."""
        while not slow_calls:
            time.sleep(0.01)
        with shop.connect() as connection:
            connection.execute(sa.text("select from requests for update"))
            locked.set()
            time.sleep(2)

    blocking = threading.Thread(target=lock_out)
    blocking.start()
    shop.run(execute)
    blocking.join()
    assert locked.is_set()
    assert 0 < len(slow_calls) < 12
    unsent = shop.rows("select from effects where state = 'intended'")
    assert len(unsent) == 12 - len(slow_calls)
    finish(shop)
    assert len(shop.calls()) == len(set(shop.calls())) == 12


def test_a_start_is_good_for_a_short_time(shop: Shop, slow_calls: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """What was not sent within the start window goes back to intended, unsent, and is started anew."""
    monkeypatch.setattr(sending, "START_WINDOW", 0.3)
    shop.run(execute)
    first = len(slow_calls)
    assert 0 < first < 12
    effects = shop.rows("select state, attempts, count(*) from effects group by 1, 2")
    assert {tuple(row) for row in effects} == {("done", 1, first), ("intended", 1, 12 - first)}
    assert len(shop.calls()) == first, "what was not sent was not called"
    monkeypatch.undo()
    finish(shop)
    assert len(shop.calls()) == len(set(shop.calls())) == 12
    shop.assert_ledger_intact()


def test_groups_shrink_to_what_the_provider_takes(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pace is learnt from the calls that were made, so that nothing but the first group is started in vain."""
    monkeypatch.setattr(sending, "START_WINDOW", 0.3)
    monkeypatch.setattr(sending, "FIRST_GROUP", 18)
    shop.hooked(QuickTill, before=lambda _: time.sleep(0.1))
    shop.queue({f"r{number}": refund(order=f"A{number}") for number in range(26)})
    shop.run()
    groups = shop.rows(
        "select count(*) filter (where state = 'intended') as unsent"
        " from effects group by started_at order by started_at"
    )
    first, *others = [group.unsent for group in groups]
    assert 0 < first < 18
    assert others == [0] * len(others)


def test_a_lease_shorter_than_a_call_is_refused(shop: Shop) -> None:
    """Under such a lease nothing could ever be sent, so the run says so instead of doing nothing for ever."""
    with pytest.raises(DefinitionError, match="set FAILSAFE_LEASE_SECONDS to 2 or more"):
        WorkflowRun(shop.workflow, shop.url, lease_seconds=1.9)
    assert WorkflowRun(shop.workflow, shop.url, lease_seconds=2).lease_seconds == 2


class SlowOrders(toy.Orders):
    """A record service that takes longer than a lease."""

    def __init__(self, slow: Slow) -> None:
        self.slow = slow

    def find_many(self, keys: Iterable[str]) -> Mapping[str, Record | None]:
        self.slow.take_long()
        return super().find_many(keys)


def test_a_record_service_slower_than_a_lease_is_no_crash(shop: Shop) -> None:
    """Look-ups before an effect keep the lease as well."""
    slow = Slow(shop)
    shop.lease_seconds = 1.1
    shop.use(QuickTill(file=str(shop.till)))
    shop.define(records={"orders": SlowOrders(slow)})
    shop.queue({"one": refund("80.00")})
    shop.run()
    shop.vote("one")
    shop.run()
    assert slow.swept == [0, 0]
    assert shop.states() == {"one": "completed"}
    assert shop.request("one").crash_count == 0
