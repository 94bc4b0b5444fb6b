"""The definition of one workflow: what may be proposed, by what, under which policy, and who carries it out."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import Any

import dagster as dg

from policies.actions import Action, Request
from policies.batches import BatchWindows
from policies.catalogue import Catalogue, CatalogueEntry
from policies.policy import Policy
from resources.adapters.base import Adapter
from resources.extractors.base import Extractor
from resources.policy_file import read_policy
from resources.records import Records
from resources.workflow_checks import check_workflow


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Workflow:
    """A named, versioned definition. Building it checks everything, so that a mistake shows when the location loads.

    Attributes:
        name: lower-case letters, digits and `_`; belongs to one code location.
        version: of this definition; a request ends under the version it came in with.
        request: the schema of its requests.
        actions: what may be proposed, each with the adapter that carries it out. An undo goes to the adapter of the
            action that it undoes, unless it is listed itself.
        extractor: `(request) -> Proposal | Abstention`.
        policy: the YAML file; a relative path starts in the folder of the module that defines `request`.
        batches: the time windows that are its partitions.
        records: trusted look-ups, by the name that `Authority(record=...)` uses.
        rules: risk rules written in Python, beside those of the policy.
        carries: earlier versions whose open requests this definition may finish.
        deps: keys of the assets its requests come from, so that the lineage shows where an automation begins.

    Raises:
        DefinitionError: naming what is wrong and what to write instead.
    """

    name: str
    version: str
    request: type[Request]
    actions: Mapping[type[Action], Adapter]
    extractor: Extractor
    policy: str | Path
    batches: BatchWindows
    records: Mapping[str, Records] = field(default_factory=dict)
    rules: tuple[Callable[..., Any], ...] = ()
    carries: tuple[str, ...] = ()
    deps: tuple[dg.AssetKey | str | tuple[str, ...], ...] = ()

    def __post_init__(self) -> None:
        check_workflow(self)
        object.__setattr__(self, "actions", MappingProxyType(dict(self.actions)))
        object.__setattr__(self, "records", MappingProxyType(dict(self.records)))
        self.policy_in_force()

    def __repr__(self) -> str:
        return f"Workflow({self.name!r}, version={self.version!r})"

    @cached_property
    def catalogue(self) -> Catalogue:
        """Every action type, compensations included, with its adapter, that adapter's target and semantics."""
        entries = {}
        for name, (model, adapter) in self._carriers.items():
            target = sha256(adapter.target().encode()).hexdigest()
            entries[name] = CatalogueEntry(model.action_type, adapter.provider(), target, adapter.semantics)
        return Catalogue(entries)

    @cached_property
    def policy_path(self) -> Path:
        """Where the policy file is."""
        beside = getattr(sys.modules[self.request.__module__], "__file__", None)
        return Path(beside).parent / self.policy if beside else Path(self.policy)

    def policy_in_force(self) -> Policy:
        """The policy as its file says now.

        Raises:
            DefinitionError: the file is gone, or something in it is wrong.
        """
        return read_policy(self.policy_path, self.catalogue)

    def adapter_for(self, action_type: str) -> Adapter:
        """The adapter that carries out an action type of the catalogue; open it before use.

        Raises:
            KeyError: the catalogue has no such action type.
        """
        return self._carriers[action_type][1]

    @property
    def carried_versions(self) -> tuple[str, ...]:
        """The versions whose requests this definition may execute, its own first."""
        return (self.version, *self.carries)

    @cached_property
    def _carriers(self) -> dict[str, tuple[type[Action], Adapter]]:
        """Action class and adapter by action type."""
        carriers = {model.action_type.name: (model, adapter) for model, adapter in self.actions.items()}
        for model, adapter in self.actions.items():
            undo = model.action_type.undo
            if undo is not None:
                carriers.setdefault(undo.action_type.name, (undo, adapter))
        return carriers
