"""The edges of idempotency that no provider is needed for."""

from __future__ import annotations

import time
import uuid
from datetime import timedelta

import pytest

from ops.batch import WorkflowRun, open_pass
from ops.keeping import LeaseKeeper
from ops.process_batch import STEPS
from policies.errors import StoreUnavailable
from policies.retries import retry_after
from resources.store.claim import ClaimedRequest, Lease
from resources.store.intake import submit
from tests.faults.oracle import judge
from tests.faults.plan import Fate, Planned
from tests.faults.proxy import breaking_off
from tests.faults.world import Place, World


def test_the_same_id_from_another_tenant_is_another_request(place: Place) -> None:
    """An operation id is one tenant's own: the same one, even with another payload, is no conflict elsewhere."""
    world = World(place, "tenants")
    rows = [
        [{"operation_id": "one", "payload": Planned(order, "keyed", Fate.AUTO).payload}] for order in ("a", "a", "b")
    ]
    receipts = [
        submit(enumerate(row), workflow=world.workflow, token=world.clerk, database_url=place.url, tenant=tenant)
        for row, tenant in zip(rows, ("first", "second", "third"), strict=True)
    ]
    assert [(len(one.receipts), one.problems, one.receipts[0].replayed) for one in receipts] == [(1, [], False)] * 3
    assert len({one.receipts[0].request_id for one in receipts}) == 3


def test_no_time_left_is_none_and_not_an_unknown_amount(place: Place) -> None:
    """Zero is a value: a lease with nothing left holds nothing, and a wait of zero seconds is one."""
    world = World(place, "zero")
    world.submit([Planned("order-1", "keyed", Fate.AUTO)])
    request = ClaimedRequest(uuid.uuid4(), "1", 1, 1, b"{}", 0, 0, cancel_requested=False, rechecked=False)
    lease = Lease(uuid.uuid4(), timedelta(0), time.monotonic(), [request])
    keeper = LeaseKeeper(open_pass(world.run(), world.batch, "run"), lease)
    assert not keeper.holds(request.id, 0.0)
    assert retry_after("0", None) == timedelta(0)


def one_pass(world: World, url: str) -> None:
    """A pass whose way to the store is this one."""
    opened = open_pass(WorkflowRun(world.workflow, url), world.batch, "run")
    for step in STEPS:
        opened.carry_out(step)


@pytest.mark.parametrize("heard", [True, False], ids=["acknowledgement_lost", "commit_lost"])
@pytest.mark.parametrize("nth", [3, 9, 14, 19, 24])
def test_a_lost_commit_is_read_again_and_never_assumed(place: Place, nth: int, heard: bool) -> None:
    """Whether the server heard it or not, the next pass finds what is so, and each effect happens once."""
    world = World(place, f"commits_{nth}_{heard}".lower())
    world.submit(
        Planned(f"{world.name}-{pay}", pay, Fate.AUTO, ("reserve", "tell"))
        for pay in ("keyed", "shared", "asked", "blind")
    )
    with breaking_off(place.url, nth, heard=heard) as (proxy, url):
        with pytest.raises(StoreUnavailable):
            one_pass(world, url)
        assert proxy.broken == 1
    world.recover()
    verdict = judge(world)
    assert verdict.clean, verdict.seen
