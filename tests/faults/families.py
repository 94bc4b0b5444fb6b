"""All families of schedules, and how many of each case are played."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from operator import attrgetter

from tests.faults import answers, changes, commits, crowds, kills, publishing, races, server_faults, stops
from tests.faults.schedules import Play


@dataclass(frozen=True)
class Amounts:
    """Schedules of each case: of each failpoint, of everything else, and of what ends the server."""

    kills: int
    others: int
    servers: int

    def of_kills(self, number: int) -> Amounts:
        """As many of each failpoint."""
        return replace(self, kills=number)


@dataclass(frozen=True)
class Family:
    """Schedules of one kind. `alone`: nothing else can go on meanwhile."""

    cases: Callable[[], Iterable[str]]
    play: Play
    amount: Callable[[Amounts], int]
    alone: bool = False


_others = attrgetter("others")

FAMILIES: dict[str, Family] = {
    "kills": Family(kills.cases, kills.play, attrgetter("kills")),
    "publishing": Family(publishing.cases, publishing.play, attrgetter("kills")),
    "stops": Family(stops.cases, stops.play, _others),
    "changes": Family(changes.cases, changes.play, _others),
    "answers": Family(answers.cases, answers.play, _others),
    "crowds": Family(crowds.cases, crowds.play, _others),
    "commits": Family(commits.cases, commits.play, lambda amounts: amounts.others * 4),
    "races": Family(races.cases, races.play, lambda amounts: amounts.others * 4),
    "server": Family(server_faults.cases, server_faults.play, attrgetter("servers"), alone=True),
}
