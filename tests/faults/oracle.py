"""The judge of a schedule: the providers' own books against what was decided, and the store against both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from policies.audit import verify_chain
from policies.states import OPEN
from resources.store.chains import batch_chains
from resources.store.engine import Duty, engine_for
from resources.store.queries import query
from tests.faults.ledger import Effect
from tests.faults.plan import RELEASED, Planned
from tests.faults.world import World


@dataclass
class Verdict:
    """What one schedule came to. The four counts that must be zero each come with a line that says what was seen."""

    kills: int = 0
    approved: int = 0
    effects: int = 0
    to_a_person: int = 0
    late_recorded: int = 0
    duplicate_effects: int = 0
    missing_effects: int = 0
    unauthorized_effects: int = 0
    unresolved: int = 0
    seen: list[str] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        """Nothing that must not be was seen."""
        return not self.seen

    def add(self, other: Verdict) -> None:
        """Count another one in."""
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)

    def duplicate(self, what: str, times: int = 1) -> None:
        """An effect happened more often than once."""
        self.duplicate_effects += times
        self.seen.append(f"duplicate: {what}")

    def missing(self, what: str) -> None:
        """An effect that was promised did not happen."""
        self.missing_effects += 1
        self.seen.append(f"missing: {what}")

    def unauthorized(self, what: str) -> None:
        """An effect happened that nobody allowed."""
        self.unauthorized_effects += 1
        self.seen.append(f"unauthorized: {what}")

    def left(self, what: str) -> None:
        """Something is neither settled nor in front of a person, or the store contradicts itself."""
        self.unresolved += 1
        self.seen.append(f"unresolved: {what}")


Ends = Callable[[Planned], frozenset[str]]
"""The states in which a schedule may leave an order."""


def judge(world: World, ends: Ends = lambda one: one.ends, *, kills: int = 0) -> Verdict:
    """Judge a schedule that has recovered."""
    verdict = Verdict(kills=kills)
    happened = world.effects()
    verdict.effects = happened.total()
    for effect, times in happened.items():
        if times > 1:
            verdict.duplicate(f"{' of '.join(effect)} happened {times} times", times - 1)
    requests = {row.operation_id: row for row in world.named("requests_as_left")}
    for one in world.planned:
        _judge_order(verdict, one, requests[one.order], happened, ends(one))
    verdict.late_recorded += int(world.named("late_events")[0].late)
    _judge_store(verdict, world)
    return verdict


def _judge_order(verdict: Verdict, one: Planned, row: Any, happened: Counter[Effect], ends: frozenset[str]) -> None:
    name = f"{one.order} ({one.fate}, {row.state}: {row.reason})"
    verdict.approved += one.fate in RELEASED
    verdict.to_a_person += row.open_case
    if row.state in OPEN:
        verdict.left(f"{name} is still open")
    elif row.state not in ends:
        (verdict.missing if one.fate in RELEASED else verdict.left)(f"{name} should be {' or '.join(sorted(ends))}")
    if row.state in ("dead_lettered", "compensation_failed") and not row.open_case:
        verdict.left(f"{name} is parked without a case")
    told = {effect["type"]: effect for effect in row.effects or []}  # of several intents the last
    for kind in sorted({*one.effects, *told, *(kind for kind, order in happened if order == one.order)}):
        _judge_effect(verdict, one, row, told.get(kind), f"{kind} of {name}", happened[kind, one.order])
    if row.state == "completed" and any(told.get(kind, {}).get("state") != "done" for kind in one.effects):
        verdict.missing(f"{name} ended without all of its effects")
    if row.state == "compensated":
        for kind, undo in _UNDONE_BY.items():
            if happened[kind, one.order] != happened[undo, one.order]:
                verdict.left(f"{kind} of {name} was not undone as often as done")


_UNDONE_BY = {"stock.reserve": "stock.unreserve", "seat.hold": "seat.free"}
_WITHOUT_EFFECT = ("rejected", "expired", "cancelled")


def _judge_effect(verdict: Verdict, one: Planned, row: Any, told: Any, what: str, times: int) -> None:
    """What the store tells of an effect, or nothing, against how often it happened."""
    state = told and told["state"]
    what = f"{what}, which the store calls {state}"
    allowed = one.fate in RELEASED and (row.state not in _WITHOUT_EFFECT or state == "late")
    if times and not (allowed and state in ("done", "late", "unknown")):
        verdict.unauthorized(f"{what}, happened")
    elif not times and state == "done" and not told["assumed"]:
        verdict.missing(what)
    elif state in ("in_flight", "unknown", "late") and not row.open_case:
        verdict.left(f"{what}, has no case")


def _judge_store(verdict: Verdict, world: World) -> None:
    for row in world.named("contradictions"):
        verdict.left(f"{row.operation_id} ({row.state}) {row.what}")
    key = {"workflow": world.name, "batch": world.batch, "limit": 10}
    with engine_for(Duty.AUDITOR, world.place.url).connect() as connection:
        for row in connection.execute(query("duplicate_effects"), key):
            verdict.duplicate(f"by the store's own check: {row.idempotency_key}")
        for row in connection.execute(query("unauthorized_effects"), key):
            verdict.unauthorized(f"by the store's own check: {row.idempotency_key}")
        for chain in batch_chains(connection, world.name, world.batch):
            found = verify_chain(chain.stream, chain.events, chain.head)
            if not found.intact:
                verdict.left(f"the ledger of {chain.stream}: {found.damage} at {found.bad_seq}")
