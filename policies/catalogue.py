"""The action types a workflow may propose, each with the adapter and target that would carry it out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from policies.actions import ActionType
from policies.errors import DefinitionError
from policies.hashing import CATALOGUE, canonical_bytes, domain_hash
from policies.outcomes import Semantics
from policies.records import record_links


@dataclass(frozen=True, slots=True)
class CatalogueEntry:
    """One action type with its adapter's name, a fingerprint of the adapter's target and the provider's semantics."""

    action_type: ActionType
    adapter: str
    target: str
    semantics: Semantics


@dataclass(frozen=True, slots=True)
class Catalogue:
    """All action types of a workflow by name, compensations included.

    Raises:
        DefinitionError: a name that is not its action type's own, a compensation without an entry, or an authority
            parameter whose key the action does not have.
    """

    entries: Mapping[str, CatalogueEntry]
    undo_types: frozenset[str] = field(init=False)
    """Names of the compensations: planned by the saga, never proposed by a model."""
    hash: str = field(init=False)
    """Hex hash of the action types; adapters and targets are part of each proposal instead."""

    def __post_init__(self) -> None:
        undo_types = set()
        for name, entry in self.entries.items():
            kind = entry.action_type
            if kind.name != name:
                raise DefinitionError(f"catalogue entry {name!r} holds action type {kind.name!r}; use one name")
            record_links(kind.model)  # raises where an authority parameter names a key the action does not have
            if kind.undo is not None:
                undo_types.add(kind.undo.action_type.name)
        for name in sorted(undo_types - self.entries.keys()):
            raise DefinitionError(f"compensation {name!r} has no adapter; add its class to the workflow's actions")
        object.__setattr__(self, "undo_types", frozenset(undo_types))
        described = {name: _describe(entry.action_type) for name, entry in self.entries.items()}
        object.__setattr__(self, "hash", domain_hash(CATALOGUE, canonical_bytes(described)).hex())


def _describe(kind: ActionType) -> dict[str, Any]:
    return {
        "reversible": kind.reversible,
        "undo": kind.undo.action_type.name if kind.undo else None,
        "sensitivity": kind.sensitivity,
        "recipient_scope": kind.recipient_scope,
        "notification": kind.notification,
        "parameters": {
            name: {"type": str(info.annotation), "required": info.is_required()}
            for name, info in kind.model.model_fields.items()
        },
        "authority": {
            name: {"record": mark.record, "field": mark.field, "key": mark.key} for name, mark in kind.authority.items()
        },
    }
