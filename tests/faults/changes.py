"""Something changes between the moment a worker counted the authority for an effect and the moment it sends it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress

from ops.assess import assess
from ops.extract import extract
from ops.request_approval import request_approval
from ops.validate import validate
from policies.errors import NotPossibleNow
from resources.failpoints import Failpoint
from resources.store import pauses
from resources.store.pauses import EVERYTHING, Scope
from resources.store.principals import disable_principal
from tests.faults.oracle import Verdict
from tests.faults.plan import Fate, Planned
from tests.faults.schedules import Stage, UnexpectedEnd, ended
from tests.faults.workflow import policy_text
from tests.faults.world import World

_BEFORE_THE_START = (Failpoint.RECHECK_RECORDED, Failpoint.STARTING_EFFECTS)
_MOMENTS = (*_BEFORE_THE_START, Failpoint.EFFECTS_STARTED, Failpoint.CALLING_PROVIDER)


def _pause(world: World, scope: Scope, name: str) -> None:
    pauses.pause(world.place.url, world.chief, scope, name, "stop that")


def _cancel(world: World) -> None:
    for one in world.planned:
        with suppress(NotPossibleNow):  # too late, or already at its end
            world.cancel(one.order)


CHANGES: dict[str, Callable[[World], object]] = {
    "pause_everything": lambda world: _pause(world, Scope.EVERYTHING, EVERYTHING),
    "pause_workflow": lambda world: _pause(world, Scope.WORKFLOW, world.name),
    "pause_provider": lambda world: _pause(world, Scope.PROVIDER, "Keyed"),
    "disable_initiator": lambda world: disable_principal(world.place.url, world.person("clerk")),
    "disable_voter": lambda world: disable_principal(world.place.url, world.person("lead")),
    "stricter_policy": lambda world: world.set_policy(policy_text(version="2", limit=1)),
    "cancel": _cancel,
}

_STOPS_ALL = ("pause_everything", "pause_workflow", "pause_provider", "disable_initiator", "cancel")
"""After these nothing starts that was not started before."""

_NOT_OF_A_NOTIFICATION = ("pause_provider", "cancel")


def cases() -> Iterator[str]:
    """Every change at every moment that it may come at."""
    for change in CHANGES:
        for moment in _MOMENTS:
            if moment is not Failpoint.STARTING_EFFECTS:
                yield f"{change}@{moment}"


def play(stage: Stage) -> Verdict:
    """Stop a worker at the moment, make the change, let it go on; see what it still does, and how all ends."""
    change, _, moment = stage.schedule.case.partition("@")
    world = stage.world()
    world.submit(
        Planned(f"{world.name}-{number}", "keyed", fate, steps)
        for number, (fate, steps) in enumerate(
            ((Fate.AUTO, ()), (Fate.AUTO, ("reserve", "tell")), (Fate.APPROVED, ()), (Fate.APPROVED, ("reserve",)))
        )
    )
    world.one_pass(_JUDGING)
    world.vote()
    stopped = stage.worker(world, f"{moment}:1:stop")
    if not stopped.stopped():
        raise UnexpectedEnd(f"no worker came by {moment}")
    before = world.effects()
    begun = {row.key for row in world.named("effects_begun")}
    CHANGES[change](world)
    stopped.go_on()
    ended(stopped)
    verdict = Verdict()
    if change in _STOPS_ALL:
        now = {row.key for row in world.named("effects_begun") if row.kind == "forward" and row.state != "intended"}
        for key in sorted(now - begun):
            if change in _NOT_OF_A_NOTIFICATION and ":customer.tell:" in key:
                continue  # after what cannot be undone a saga goes forward, and its last step has another provider
            verdict.unauthorized(f"{key} was started after {change}")
        if Failpoint(moment) in _BEFORE_THE_START and world.effects() != before:
            verdict.unauthorized(f"something was sent after {change}")
    world.execute("delete from pauses")
    verdict.add(stage.finish(world, _ends(change)))
    return verdict


def _ends(change: str) -> Callable[[Planned], frozenset[str]]:
    more = {
        "disable_initiator": {"needs_review", "dead_lettered", "rejected"},
        "disable_voter": {"expired", "dead_lettered"},
        "stricter_policy": {"dead_lettered"},
        "cancel": {"cancelled", "compensated"},
    }.get(change, set())
    return lambda one: one.ends | more


_JUDGING = (extract, validate, assess, request_approval)
