"""What the tests of idempotency share: a world of its own for each, and the provider that it is about."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from resources import failpoints
from resources.failpoints import Failpoint, FailpointReached
from tests.faults.fixtures import place
from tests.faults.http_provider import serving_keyed
from tests.faults.ledger import Ledger
from tests.faults.plan import Fate, Planned
from tests.faults.world import Place, World

__all__ = ["place"]

PROVIDERS = {
    "http": "keyed",
    "in_process": "keyed",
    "shared_transaction": "shared",
    "look_up_only": "asked",
    "blind": "blind",
}
"""Each kind of provider, and what the payment there is called. Behind `http` and `shared_transaction` are the adapters
that ship; the others are as simple as an adapter can be."""


@dataclass
class Payment:
    """One order, to be paid at one kind of provider."""

    world: World
    provider: str
    pay: str
    order: str = ""

    @property
    def kind(self) -> str:
        """The action type of the payment."""
        return f"pay.{self.pay}"

    @property
    def promised(self) -> bool:
        """Exactly once is promised there."""
        return self.pay in ("keyed", "shared")

    @property
    def state(self) -> str:
        """The request's state."""
        return self.world.states()[self.order]

    @property
    def times(self) -> int:
        """How often the order was paid, by the provider's own books."""
        return self.world.effects()[self.kind, self.order]

    @property
    def calls(self) -> list[str]:
        """The keys of the calls for the payment; a bank tells only of those that it made good."""
        return self.world.ledger.calls(self.kind)

    @property
    def ledger(self) -> Ledger:
        """The books of all providers but the bank."""
        return self.world.ledger

    def submit(self, prefix: str = "order", steps: tuple[str, ...] = ()) -> None:
        """Hand the order in; the prefix of its id may be one that providers know."""
        self.order = f"{prefix}-{self.world.name}"
        self.world.submit([Planned(self.order, self.pay, Fate.AUTO, steps)])

    def run(self) -> None:
        """One pass."""
        self.world.one_pass()

    def run_later(self, times: int = 1) -> None:
        """Passes, an hour after each other."""
        for _ in range(times):
            self.world.let_time_pass()
            self.world.one_pass()

    def die_at(self, point: Failpoint) -> None:
        """A pass whose worker dies at a point."""
        failpoints.arm(f"{point}:1:raise")
        try:
            with pytest.raises(FailpointReached):
                self.world.one_pass()
        finally:
            failpoints.watch(None)

    def effect(self) -> tuple[str, int]:
        """State and number of starts of the payment's effect, as the store has it."""
        (row,) = [row for row in self.world.named("effects_begun") if row.action_type == self.kind]
        return row.state, row.attempts


_numbers = itertools.count(1)


@pytest.fixture
def payment(request: pytest.FixtureRequest, place: Place) -> Iterator[Payment]:
    """A payment at the provider that the test is parametrised with."""
    provider: str = request.param
    world = World(place, f"at_{provider}_{next(_numbers)}")
    if provider != "http":
        yield Payment(world, provider, PROVIDERS[provider])
        return
    with serving_keyed(world.ledger.file) as url:
        world.keyed_url = url
        world.workflow = world.define()
        yield Payment(world, provider, PROVIDERS[provider])
