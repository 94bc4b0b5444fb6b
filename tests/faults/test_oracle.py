"""The oracle sees what must not be: a harness that is blind would find nothing whatever happens."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
import sqlalchemy as sa

from tests.faults.oracle import Verdict, judge
from tests.faults.plan import CERTAIN, Fate, Planned
from tests.faults.world import Place, World

_numbers = itertools.count(1)


@pytest.fixture
def world(place: Place) -> World:
    """One order paid at each kind of provider, one that was denied, all at their end."""
    world = World(place, f"judged_{next(_numbers)}")
    world.submit(
        Planned(f"{pay}-{world.name}", pay, Fate.AUTO, ("reserve",)) for pay in ("keyed", "shared", "asked", "blind")
    )
    world.submit([Planned(f"denied-{world.name}", "keyed", Fate.DENIED)])
    world.one_pass()
    world.recover()
    return world


def once_more(world: World) -> None:
    """A payment happens a second time."""
    with world.ledger.writing() as books:
        world.ledger.write(books, "another key", ("pay.blind", f"blind-{world.name}"))


def never(world: World) -> None:
    """A payment that the store calls done did not happen."""
    with world.ledger.writing() as books:
        books.execute("delete from effects where type = 'pay.keyed'")


def uncalled_for(world: World) -> None:
    """What a person denied is paid."""
    with world.ledger.writing() as books:
        world.ledger.write(books, "a key", ("pay.keyed", f"denied-{world.name}"))


def left_open(world: World) -> None:
    """A request is not at its end."""
    world.execute(
        "update requests set state = 'executing', closed_at = null"
        " where operation_id like 'blind%' and workflow = :workflow"
    )


def left_unknown(world: World) -> None:
    """Nobody looks after an unknown effect."""
    world.execute(
        "update effects set state = 'unknown' where action_type = 'pay.asked'"
        " and request_id in (select id from requests where workflow = :workflow)"
    )


def rewritten(world: World) -> None:
    """An event of the ledger was changed."""
    world.execute(
        "update audit_events set payload = '{}' where type = 'effect.done'"
        " and stream in (select 'request:' || id from requests where workflow = :workflow)"
    )


@pytest.mark.parametrize(
    ("harm", "field"),
    [
        (once_more, "duplicate_effects"),
        (never, "missing_effects"),
        (uncalled_for, "unauthorized_effects"),
        (left_open, "unresolved"),
        (left_unknown, "unresolved"),
        (rewritten, "unresolved"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_what_must_not_be_is_seen(world: World, harm: Callable[[World], None], field: str) -> None:
    """Before the harm there is nothing to be seen; after it, it is counted and named."""
    assert judge(world) == Verdict(approved=4, effects=8)
    harm(world)
    verdict = judge(world)
    assert getattr(verdict, field) > 0
    assert not verdict.clean


def given_up(world: World, pay: str) -> None:
    """A payment is parked in front of a person instead of made."""
    it = {"kind": f"pay.{pay}", "order": f"{pay}-{world.name}"}
    with world.ledger.writing() as books:
        books.execute("delete from effects where type = ?", (it["kind"],))
    with world.place.connect(world.place.bank_url).begin() as bank:
        bank.execute(sa.text("delete from payments where type = :kind and order_id = :order"), it)
    of_it = "from requests r where r.workflow = :workflow and r.operation_id = :order"
    world.execute(
        f"update effects e set state = 'fenced' {of_it} and e.request_id = r.id and e.action_type = :kind", **it
    )
    world.execute(f"select open_case(r.id, 'execute', 'gave up') {of_it}", order=it["order"])
    world.execute(
        "update requests set state = 'dead_lettered', closed_at = null"
        " where workflow = :workflow and operation_id = :order",
        order=it["order"],
    )


@pytest.mark.parametrize("pay", ["keyed", "shared", "asked", "blind"])
def test_parked_is_missing_where_exactly_once_is_promised(world: World, pay: str) -> None:
    """A person may be asked about an effect that nobody can tell of; a provider that can is not given up on."""
    given_up(world, pay)
    verdict = judge(world)
    assert verdict.missing_effects == (pay in CERTAIN)
    assert verdict.clean is (pay not in CERTAIN)
