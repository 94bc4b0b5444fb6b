"""Resolve what proposals rest on through the workflow's trusted services, one batched call a service."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from policies.records import Record, ResolvedRecords, record_key, record_links
from policies.sealing import Sealed

if TYPE_CHECKING:
    from resources.workflow import Workflow


def resolve(workflow: Workflow, needed: Iterable[tuple[str, str]]) -> ResolvedRecords:
    """Look up every (record, key); a key that the service does not know resolves to None."""
    keys: dict[str, set[str]] = {}
    for record, key in needed:
        keys.setdefault(record, set()).add(key)
    resolved: dict[tuple[str, str], Record | None] = {}
    for record, wanted in keys.items():
        found = workflow.records[record].find_many(sorted(wanted))
        resolved.update({(record, key): _as_asked(record, key, found.get(key)) for key in wanted})
    return resolved


def _as_asked(record: str, key: str, found: Record | None) -> Record | None:
    """An answer about another record is no answer: a mixed-up batch must not pay the wrong person."""
    return found if found is not None and (found.record, found.key) == (record, key) else None


def behind(sealed: Sealed) -> set[tuple[str, str]]:
    """Every (record, key) that a sealed proposal rests on."""
    return {
        (link.record, key)
        for action in sealed.actions
        for link in record_links(action.action_type.model)
        if (key := record_key(action.values[link.key])) is not None
    }
