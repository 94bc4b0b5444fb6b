"""What the tests of idempotency share: a world of its own for each, and the provider that it is about."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import pytest
from sqlalchemy import make_url

from resources import failpoints
from resources.failpoints import Failpoint, FailpointReached
from tests.adapters.mail_server import MailServer, serving_mail
from tests.faults.fixtures import place
from tests.faults.http_provider import serving_keyed
from tests.faults.ledger import Ledger
from tests.faults.plan import Fate, Planned
from tests.faults.providers import BANK_URL, REFUSED
from tests.faults.workflow import PAYMENTS
from tests.faults.world import Place, World
from tests.idempotency.mails import OUTAGES, mailing

__all__ = ["place"]

PROVIDERS = {
    "http": "keyed",
    "in_process": "keyed",
    "shared_transaction": "shared",
    "look_up_only": "asked",
    "blind": "blind",
    "smtp": "blind",
}
"""Each kind of provider, and what the payment there is called. Behind `http`, `shared_transaction` and `smtp` are the
adapters that ship; the others are as simple as an adapter can be. A payment by mail is an order to pay."""


@dataclass
class Payment:
    """One order, to be paid at one kind of provider."""

    world: World
    provider: str
    pay: str
    order: str = ""
    mails: MailServer | None = None
    """The provider, where it is asked by mail."""

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
        if self.mails is not None:
            return sum(self.order in mail.recipients for mail in self.mails.mails)
        return self.world.effects()[self.kind, self.order]

    @property
    def calls(self) -> list[str]:
        """The keys of the calls for the payment; a mail server knows whom they were for, a bank tells of none."""
        if self.mails is not None:
            return [line for line in self.mails.heard if line.startswith("RCPT")]
        return self.world.ledger.calls(self.kind)

    @property
    def ledger(self) -> Ledger:
        """The books of all providers but the bank."""
        return self.world.ledger

    def submit(self, prefix: str = "order", steps: tuple[str, ...] = ()) -> None:
        """Hand the order in; the prefix of its id may be one that providers know."""
        self.order = f"{prefix}-{self.world.name}"
        if self.mails is not None:
            self.order += "@customer.example"
            if prefix == REFUSED:
                self.mails.replies["RCPT"] = ["550 nobody of this name"]
        self.world.submit([Planned(self.order, self.pay, Fate.AUTO, steps)])

    def break_down(self, fault: str, times: int = 1) -> None:
        """Let the next calls meet a fault (see `tests/faults/providers.py`)."""
        if self.mails is None:
            self.world.ledger.break_down(self.kind, fault, times)
        else:
            command, act = OUTAGES[fault]
            self.mails.replies[command] = [act] * times

    @contextmanager
    def bank_away(self) -> Iterator[None]:
        """Nobody listens where the bank was."""
        with pytest.MonkeyPatch.context() as patch:
            nowhere = make_url(self.world.place.bank_url).set(host=None, port=None)
            url = nowhere.update_query_dict({"host": str(self.world.folder), "port": "5432"})
            patch.setenv(BANK_URL, url.render_as_string(hide_password=False))
            yield

    def in_another_workflow(self) -> World:
        """Another world with the same provider."""
        other = World(self.world.place, f"{self.world.name}_too", keyed_url=self.world.keyed_url)
        if self.mails is not None:
            by_mail(other, self.mails)
        return other

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


def by_mail(world: World, server: MailServer) -> None:
    """Let the payments of which nobody can tell go out by mail."""
    kind = PAYMENTS["blind"]
    world.workflow = replace(world.workflow, actions={**world.workflow.actions, kind: mailing(server, kind)})


@pytest.fixture
def payment(request: pytest.FixtureRequest, place: Place) -> Iterator[Payment]:
    """A payment at the provider that the test is parametrised with."""
    provider: str = request.param
    world = World(place, f"at_{provider}_{next(_numbers)}")
    if provider == "http":
        with serving_keyed(world.ledger.file) as url:
            world.keyed_url = url
            world.workflow = world.define()
            yield Payment(world, provider, PROVIDERS[provider])
    elif provider == "smtp":
        with serving_mail(MailServer()) as server:
            by_mail(world, server)
            yield Payment(world, provider, PROVIDERS[provider], mails=server)
    else:
        yield Payment(world, provider, PROVIDERS[provider])
