"""Whatever happens, in any order: no effect twice, none that nobody allowed, and in the end each that was promised."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import ClassVar

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from ops.process_batch import STEPS
from policies.attempts import MAX_ATTEMPTS
from policies.errors import FailsafeError, NotPossibleNow
from resources import failpoints
from resources.failpoints import Failpoint, FailpointReached
from resources.store import operator, pauses
from resources.store.pauses import EVERYTHING, Scope
from resources.store.votes import cast_vote
from tests.faults.oracle import judge
from tests.faults.plan import Fate, Planned
from tests.faults.providers import BANK_URL, CALL_FAULTS, LOOK_UP_FAULTS, REFUSED, STUCK
from tests.faults.proxy import breaking_off
from tests.faults.workflow import policy_text
from tests.faults.world import Place, World
from tests.statemachine.promises import Promises

STEPS_WANTED = int(os.environ.get("FAILSAFE_MACHINE_STEPS", "300"))
"""`make machine` asks for 10,000, a usual test run for a few hundred."""

STEPS_OF_AN_EXAMPLE = 100
EXAMPLES = 5
"""The fewest that are drawn together: the first ones are always simple."""

MOST_REDRIVES = 3
"""How often operators take up what is parked at the end of an example, where nothing goes wrong any more."""

KINDS = ("pay.keyed", "pay.asked", "pay.blind", "stock.reserve", "stock.unreserve", "customer.tell")
FAULTS = (*CALL_FAULTS, *LOOK_UP_FAULTS)
EVIDENCE = "seen in the provider's own books"

WORN_OUT = re.compile(rf"attempt {MAX_ATTEMPTS} of {MAX_ATTEMPTS}|workers died on this request")
"""Why alone an order is parked that exactly once is promised for: never because nobody could tell what became of it."""

POINTS = [point for point in Failpoint if not point.name.startswith(("EVENTS", "DELIVER", "MARK", "CLOS"))]
"""Points that a pass comes by."""

AROUND_A_CALL = (Failpoint.EFFECTS_STARTED, Failpoint.CALLING_PROVIDER, Failpoint.PROVIDER_ANSWERED)
"""Those that leave an effect of which nobody knows: half of all workers die there."""


class Machine(RuleBasedStateMachine):
    """One workflow, its people, its providers and their troubles, and workers that may die at any point."""

    place: ClassVar[Place]
    bank: ClassVar[sa.Connection]
    worlds: ClassVar[Iterator[int]]
    steps_taken: ClassVar[int] = 0

    def __init__(self) -> None:
        super().__init__()
        self.world = World(self.place, f"m{next(self.worlds)}")
        self.promises = Promises()
        self.paused = False

    # -- orders

    @initialize(troubles=st.lists(st.tuples(st.sampled_from(KINDS), st.sampled_from(FAULTS)), min_size=2, max_size=6))
    def first_orders(self, troubles: list[tuple[str, str]]) -> None:
        """There is something to do from the beginning at every kind of provider, and some are in trouble."""
        for kind, fault in troubles:
            self.world.ledger.break_down(kind, fault)
        self.world.submit(
            Planned(f"first-{self.world.name}-{pay}", pay, Fate.AUTO, steps)
            for pay, steps in (("keyed", ("reserve", "tell")), ("shared", ("hold",)), ("asked", ()), ("blind", ()))
        )

    @precondition(lambda self: len(self.world.planned) < 12)
    @rule(
        pay=st.sampled_from(("keyed", "keyed", "shared", "asked", "blind")),
        fate=st.sampled_from((Fate.AUTO, Fate.AUTO, Fate.UNANSWERED, Fate.TOO_MUCH, Fate.ABSTAINED)),
        steps=st.sampled_from(((), ("reserve",), ("tell",), ("reserve", "tell"), ("hold",), ("reserve", "hold"))),
        customer=st.sampled_from(("order", "order", REFUSED, STUCK)),
    )
    def submit(self, pay: str, fate: Fate, steps: tuple[str, ...], customer: str) -> None:
        """An order is handed in."""
        order = f"{customer}-{self.world.name}-{len(self.world.planned)}"
        self.world.submit([Planned(order, pay, fate, steps)])

    # -- workers

    @rule()
    def run_pass(self) -> None:
        """A worker makes a pass."""
        self.world.one_pass()

    @rule(step=st.sampled_from(range(len(STEPS))))
    def run_step(self, step: int) -> None:
        """A run begins at one step, and ends there."""
        self.world.one_pass(STEPS[step : step + 1])

    @rule(point=st.sampled_from(POINTS) | st.sampled_from(AROUND_A_CALL), nth=st.integers(1, 3))
    def crash(self, point: Failpoint, nth: int) -> None:
        """A worker dies at a point of its pass, if it comes by; what it held stays held."""
        with dying_at(point, nth), suppress(FailpointReached):
            self.world.one_pass()

    @rule(nth=st.integers(1, 3), heard=st.booleans())
    def lose_the_bank(self, nth: int, heard: bool) -> None:
        """A worker makes a pass and loses its connection to the bank, before or after the bank has done as told."""
        with breaking_off(self.place.bank_url, nth, heard=heard, at_statements=True) as (_, url), bank_at(url):
            self.world.one_pass()

    # -- time

    @rule()
    def leases_end(self) -> None:
        """Whatever dead workers hold, they hold no more."""
        self.world.change("leases_end")

    @rule()
    def waits_pass(self) -> None:
        """Everything that waits is due."""
        self.world.change("waits_pass")

    @rule()
    def an_hour_passes(self) -> None:
        """All of that, no call is under way any more, every effect shows, and breakers let a probe through."""
        self.world.let_time_pass()

    @rule()
    def approvals_expire(self) -> None:
        """Nobody decided in time."""
        self.promises.expired(row.operation_id for row in self.world.named("waiting"))
        self.world.expire()

    @rule()
    def trouble_lasts(self) -> None:
        """Whatever is open has been tried as often as it may be, but for one time."""
        self.world.execute(
            "update requests set attempts = :tried where workflow = :workflow and closed_at is null",
            tried=MAX_ATTEMPTS - 1,
        )

    # -- people

    @rule(approve=st.booleans(), which=st.integers(0, 20))
    def vote(self, approve: bool, which: int) -> None:
        """A lead decides on one request that waits for it."""
        waiting = self.world.named("waiting")
        if not waiting:
            return
        asked = waiting[which % len(waiting)]
        with suppress(FailsafeError):  # it expired in this moment
            cast_vote(
                self.world.place.url,
                self.world.lead,
                approval_id=asked.id,
                vote="approve" if approve else "deny",
                proposal_hash=asked.proposal_hash,
                review_hash=asked.review_hash,
            )
            if approve:
                self._now(asked.operation_id, Fate.APPROVED)
            else:
                self.promises.denied(asked.operation_id)

    @rule(which=st.integers(0, 20))
    def cancel(self, which: int) -> None:
        """An operator cancels an order, if it is not too late."""
        self._cancel(self.world.planned[which % len(self.world.planned)].order)

    @rule(scope=st.sampled_from(((Scope.EVERYTHING, EVERYTHING), (Scope.PROVIDER, "Keyed"))))
    def pause_or_resume(self, scope: tuple[Scope, str]) -> None:
        """An operator stops effects, or lets them go on."""
        with suppress(FailsafeError):  # no run has named its providers yet, so there is nothing of this name
            if self.paused:
                for one in ((Scope.EVERYTHING, EVERYTHING), (Scope.PROVIDER, "Keyed")):
                    pauses.resume(self.world.place.url, self.world.chief, *one, "it is over")
                self.paused = False
            else:
                pauses.pause(self.world.place.url, self.world.chief, *scope, "stop that")
                self.paused = True

    @rule(limit=st.sampled_from((1, 50)))
    def change_policy(self, limit: int) -> None:
        """Another policy comes into force."""
        self.world.set_policy(policy_text(version=str(limit), limit=limit))

    @rule()
    def settle_by_hand(self) -> None:
        """An operator finds out what became of every effect that waits for a person, and says so."""
        books = self.world.effects()
        for row in self.world.named("unsettled"):
            done = bool(books[row.action_type, row.operation_id])
            operator.resolve_unknown(self.world.place.url, self.world.chief, row.key, done=done, evidence=EVIDENCE)

    @rule()
    def redrive(self) -> None:
        """An operator sends everything that is parked on its way again."""
        parked = self.world.rows("select id from requests where workflow = :workflow and state = 'dead_lettered'")
        operator.redrive(self.world.place.url, self.world.chief, [row.id for row in parked], "try again", dry_run=False)

    # -- providers

    @rule(kind=st.sampled_from(KINDS), fault=st.sampled_from(FAULTS), times=st.integers(1, 3))
    def break_down(self, kind: str, fault: str, times: int) -> None:
        """A provider gets into trouble."""
        self.world.ledger.break_down(kind, fault, times)

    @rule()
    def repair(self) -> None:
        """All providers work."""
        self.world.ledger.repair()

    # -- what always holds

    @invariant()
    def no_effect_happens_twice(self) -> None:
        """By the providers' own books."""
        type(self).steps_taken += 1
        twice = [effect for effect, times in self.world.ledger.effects().items() if times > 1]
        twice += self.bank.execute(_TWICE_AT_THE_BANK, {"orders": [one.order for one in self.world.planned]}).all()
        assert not twice, twice

    def teardown(self) -> None:
        """Once nothing goes wrong any more and operators did their part, what was promised is done, and all agree."""
        self.world.ledger.repair()
        self.world.execute("delete from pauses")
        self.world.recover()
        self._take_up_what_is_parked()
        verdict = judge(self.world, self.promises.ends)
        assert verdict.clean, "\n".join(verdict.seen)

    def _take_up_what_is_parked(self) -> None:
        for _ in range(MOST_REDRIVES):
            parked = self.world.rows(
                "select operation_id, reason from requests where workflow = :workflow and state = 'dead_lettered'"
            )
            if not parked:
                return
            undisturbed = {one.order for one in self.world.planned if one.certain and self.promises.undisturbed(one)}
            for row in parked:
                assert row.operation_id not in undisturbed or WORN_OUT.search(row.reason), f"parked for nothing: {row}"
            self.settle_by_hand()
            for order in self.promises.uncertain.intersection(row.operation_id for row in parked):
                self._cancel(order)
            self.redrive()
            self.world.recover()

    def _cancel(self, order: str) -> None:
        with suppress(NotPossibleNow):
            self.promises.cancelled(order, self.world.cancel(order))

    def _now(self, order: str, fate: Fate) -> None:
        planned = self.world.planned
        planned[:] = [replace(one, fate=fate) if one.order == order else one for one in planned]


_TWICE_AT_THE_BANK = sa.text(
    "select type, order_id from payments where order_id = any(:orders) group by 1, 2 having count(*) > 1"
)


@contextmanager
def bank_at(url: str) -> Iterator[None]:
    """The workers of this process find the bank there."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(BANK_URL, url)
        yield


@contextmanager
def dying_at(point: Failpoint, nth: int) -> Iterator[None]:
    """Whoever comes by the point for the `nth` time dies there, with all its threads."""
    failpoints.arm(f"{point}:{nth}:raise")
    try:
        yield
    finally:
        failpoints.watch(None)
        for thread in threading.enumerate():
            if thread.name.endswith("(work)"):
                thread.join(5)


@pytest.mark.timeout(1500)
def test_whatever_happens_in_any_order(place: Place) -> None:
    """Thousands of steps of workers, people, providers and time, drawn and shrunk by Hypothesis."""
    Machine.place, Machine.worlds, Machine.steps_taken = place, iter(range(10**9)), 0
    drawn = settings(stateful_step_count=STEPS_OF_AN_EXAMPLE, suppress_health_check=list(HealthCheck), print_blob=True)
    with place.connect(place.bank_url).connect().execution_options(isolation_level="AUTOCOMMIT") as Machine.bank:
        while (left := STEPS_WANTED - Machine.steps_taken) > 0:
            examples = max(EXAMPLES, left // STEPS_OF_AN_EXAMPLE)
            run_state_machine_as_test(Machine, settings=settings(drawn, max_examples=examples))
    print(f"\n{Machine.steps_taken} generated steps")
