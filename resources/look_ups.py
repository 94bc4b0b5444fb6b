"""Resolve what proposals rest on through the workflow's trusted services, one batched call a service."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from policies.records import Record, ResolvedRecords, record_key, record_links
from policies.sealing import Sealed

if TYPE_CHECKING:
    from resources.workflow import Workflow

Key: TypeAlias = tuple[str, str]
"""The name of a record service, and the key of one record there."""

PARTS = 8
"""Into how many parts a call that failed is split: from 1000 keys to a single one in four steps."""

MOST_IN_A_ROW = 8
"""Calls of one service that may fail one after the other; then it is left alone, for it may be down."""

MOST_AFTER_AN_ANSWER = 32
"""The same for one that has answered in this look: many of its keys may be bad, yet it may also go down meanwhile."""


@dataclass(slots=True)
class LookedUp:
    """What record services answered, and for which keys they failed."""

    records: dict[Key, Record | None] = field(default_factory=dict)
    failed: dict[Key, str] = field(default_factory=dict)
    """The type of the error of the last call that asked for this key."""
    alone: set[Key] = field(default_factory=set)
    """Those of the failed ones for which a call asked that asked for nothing else."""

    def answered(self, record: str) -> bool:
        """Whether the service answered at all."""
        return any(service == record for service, _ in self.records)


def resolve(workflow: Workflow, needed: Iterable[Key]) -> ResolvedRecords:
    """Look up every (record, key); a key that the service does not know resolves to None.

    Raises:
        Exception: whatever a service raises.
    """
    return {
        found: answer
        for record, keys in _by_record(needed).items()
        for found, answer in _ask(workflow, record, keys).items()
    }


def resolve_apart(workflow: Workflow, needed: Iterable[Key]) -> LookedUp:
    """As `resolve`, but where a service fails, its keys are asked for in ever smaller parts.

    So one key that it cannot answer for costs no other its answer. A service that fails several times in a row is not
    asked on: the keys that are left count as failed, though not alone. Which ones those are is left to chance, so that
    nobody who chooses keys can choose them.
    """
    looked = LookedUp()
    for record, keys in _by_record(needed).items():
        _ask_apart(workflow, record, keys, looked)
    return looked


def _ask_apart(workflow: Workflow, record: str, keys: Sequence[str], looked: LookedUp) -> None:
    waiting, in_a_row, most = [keys], 0, MOST_IN_A_ROW
    while waiting and in_a_row < most:
        part = waiting.pop()
        try:
            looked.records.update(_ask(workflow, record, part))
            in_a_row, most = 0, MOST_AFTER_AN_ANSWER
        except Exception as error:  # noqa: BLE001  # a service may raise anything; who waits for it is told the type
            in_a_row += 1
            looked.failed.update(dict.fromkeys(((record, key) for key in part), type(error).__name__))
            if len(part) == 1:
                looked.alone.add((record, part[0]))
            else:
                shuffled = random.sample(part, len(part))
                waiting.extend(shuffled[first::PARTS] for first in range(min(PARTS, len(part))))
    for key in looked.failed.keys() & looked.records.keys():
        del looked.failed[key]


def _by_record(needed: Iterable[Key]) -> Mapping[str, Sequence[str]]:
    keys: dict[str, set[str]] = {}
    for record, key in needed:
        keys.setdefault(record, set()).add(key)
    return {record: sorted(wanted) for record, wanted in keys.items()}


def _ask(workflow: Workflow, record: str, keys: Sequence[str]) -> Mapping[Key, Record | None]:
    found = workflow.records[record].find_many(keys)
    return {(record, key): _as_asked(record, key, found.get(key)) for key in keys}


def _as_asked(record: str, key: str, found: Record | None) -> Record | None:
    """An answer about another record is no answer: a mixed-up batch must not pay the wrong person."""
    return found if found is not None and (found.record, found.key) == (record, key) else None


def behind(sealed: Sealed) -> set[Key]:
    """Every (record, key) that a sealed proposal rests on."""
    return {
        (link.record, key)
        for action in sealed.actions
        for link in record_links(action.action_type.model)
        if (key := record_key(action.values[link.key])) is not None
    }
