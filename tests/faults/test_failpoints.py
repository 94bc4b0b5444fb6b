"""Failpoints: nothing unless armed, exactly what was ordered if so, and every one of them lies on a real way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import dagster as dg
import pytest

from ops.batch import open_pass
from ops.close_batch import close_batch
from ops.process_batch import STEPS
from ops.publishing import Publisher, publish_events
from resources import failpoints
from resources.failpoints import Failpoint, FailpointReached, reach
from resources.outbox.webhook import Webhook
from tests.faults import kills, publishing
from tests.faults.plan import usual
from tests.faults.world import Place, World
from tests.outbox.receiver import SECRET, receiving


@pytest.fixture(autouse=True)
def disarmed() -> Iterator[None]:
    """No test leaves a point armed."""
    yield
    failpoints.watch(None)


def test_an_unarmed_point_costs_nothing_that_can_be_measured() -> None:
    """Ten thousand of them, more than any run comes by, take less than a single commit."""
    began = time.perf_counter()
    for _ in range(10_000):
        reach(Failpoint.CLAIMED)
    assert time.perf_counter() - began < 0.05


def test_it_acts_at_the_time_ordered_and_at_no_other() -> None:
    """Neither before nor after, and at no other point."""
    failpoints.arm("claimed:2:raise")
    reach(Failpoint.CLAIMED)
    reach(Failpoint.RELEASED)
    with pytest.raises(FailpointReached):
        reach(Failpoint.CLAIMED)
    reach(Failpoint.CLAIMED)
    failpoints.arm("")
    reach(Failpoint.CLAIMED)


@pytest.mark.parametrize("order", ["nowhere:1:kill", "claimed:0:kill", "claimed:1:vanish", "claimed", "claimed:x:kill"])
def test_an_order_that_means_nothing_is_refused(order: str) -> None:
    """A point misspelt would test nothing."""
    with pytest.raises(ValueError, match=r".+"):
        failpoints.arm(order)


@pytest.mark.parametrize("action", ["kill", "stop"])
def test_a_process_is_armed_by_its_environment(action: str) -> None:
    """It kills or stops itself, as a failing machine would do it."""
    program = "from resources.failpoints import Failpoint, reach; reach(Failpoint.CLAIMED); print('went on')"
    environment = {**os.environ, "FAILSAFE_FAILPOINT": f"claimed:1:{action}", "PYTHONPATH": str(Path.cwd())}
    with subprocess.Popen([sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE) as process:
        if action == "stop":
            _, status = os.waitpid(process.pid, os.WUNTRACED)
            assert os.WIFSTOPPED(status)
            process.send_signal(signal.SIGCONT)
        out, _ = process.communicate(timeout=30)
    assert out == (b"" if action == "kill" else b"went on\n")
    assert process.returncode == (-signal.SIGKILL if action == "kill" else 0)


def test_every_point_lies_on_a_way_that_a_schedule_takes(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Orders of every fate, a dead worker, lost answers and the publisher come by all of them."""
    assert {*kills.cases(), *publishing.cases()} == {point.value for point in Failpoint}
    reached: set[Failpoint] = set()
    world = World(place, "every_point")
    world.submit(usual(world.name, Random(1)))
    world.ledger.break_down("pay.keyed", "lose_answer")

    def die_in_the_first_call(point: Failpoint) -> None:
        reached.add(point)
        if point is Failpoint.CALLING_PROVIDER:
            raise FailpointReached

    failpoints.watch(die_in_the_first_call)
    with pytest.raises(FailpointReached):
        world.one_pass()
    failpoints.watch(reached.add)
    for _ in range(4):
        world.let_time_pass()
        opened = open_pass(world.run(), world.batch, "run")
        for step in STEPS:
            opened.carry_out(step)
        close_batch(opened, STEPS)
        world.vote()
        world.expire()
    monkeypatch.setenv("HOOK_SECRET", SECRET)
    with receiving() as receiver:
        hook = Webhook(url=receiver.url, secret=dg.EnvVar("HOOK_SECRET"), hosts=["127.0.0.1"], timeout_seconds=5)
        publish_events(Publisher(hook, place.url))
    assert set(Failpoint) - reached == set()
