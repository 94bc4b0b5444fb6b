"""Everything that can be wrong with a workflow definition, found when it is built."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn
from uuid import UUID

from policies.actions import Action, ActionType, Request
from policies.batches import BatchWindows
from policies.errors import DefinitionError
from policies.sealing import MAX_ACTIONS
from policies.undo_checks import check_undo
from resources.adapters.base import Adapter
from resources.extractors.base import traits
from resources.records import Records

NAME = re.compile(r"[a-z][a-z0-9_]{0,47}")
"""Workflow names: they become part of job names, asset keys, idempotency keys and addresses."""

MAX_KEY = 255
"""Characters of an idempotency key: what a provider takes at most, and the store."""

_LONGEST_REST = len(f":{UUID(int=0)}:{MAX_ACTIONS}::999999:undo")
"""Of a key beside the names of workflow and action type; no action is tried anew a million times."""


def check_workflow(workflow: Any) -> None:
    """Checks every part of the definition but its policy file. Users' code need not be typed, so anything may be there.

    Raises:
        DefinitionError: the first mistake found, with its remedy.
    """
    _check_names(workflow)
    _check_actions(workflow)
    _check_records(workflow)
    traits(workflow.extractor)
    if isinstance(workflow.extractor, Adapter):
        _fail(workflow, "extractor: an adapter holds a provider's secret and can never be the extractor")
    if not isinstance(workflow.policy, (str, Path)) or not str(workflow.policy):
        _fail(workflow, 'policy: name the YAML file: policy="policy.yaml"')
    if not isinstance(workflow.batches, BatchWindows):
        _fail(workflow, 'batches: write batches=fs.daily(since="2026-11-01") or fs.hourly(since=...)')
    if not isinstance(workflow.rules, tuple) or not all(map(callable, workflow.rules)):
        _fail(workflow, "rules: write a tuple of functions: rules=(rule,)")


def _check_names(workflow: Any) -> None:
    if not isinstance(workflow.name, str) or NAME.fullmatch(workflow.name) is None:
        _fail(workflow, "name: write a lower-case letter, then at most 47 lower-case letters, digits or _")
    for version in (workflow.version, *(workflow.carries if isinstance(workflow.carries, tuple) else (None,))):
        if not isinstance(version, str) or not version.strip() or len(version) > 60:
            _fail(workflow, 'version and carries: write texts: version="2", carries=("1",)')
    if len({workflow.version, *workflow.carries}) <= len(workflow.carries):
        _fail(workflow, "carries: name earlier versions only, each once; the own version is always carried")
    request = workflow.request
    if not isinstance(request, type) or not issubclass(request, Request) or request is Request:
        _fail(workflow, "request: give a subclass of fs.Request that declares the fields of a request")


def _check_actions(workflow: Any) -> None:
    if not isinstance(workflow.actions, Mapping) or not workflow.actions:
        _fail(workflow, "actions: map each action class to its adapter: actions={Refund: Payments(...)}")
    for model, adapter in workflow.actions.items():
        if not isinstance(model, type) or not issubclass(model, Action) or model is Action:
            _fail(workflow, f"actions: {model!r} is no action class; declare class Refund(fs.Action, name=..., ...)")
        if not isinstance(adapter, Adapter):
            _fail(workflow, f"actions: {model.__name__} has no adapter; give an instance of a subclass of fs.Adapter")
    known = tuple(_all_actions(workflow))
    names: dict[str, type[Action]] = {}
    for model in known:
        if names.setdefault(model.action_type.name, model) is not model:
            _fail(workflow, f"actions: two classes have the type name {model.action_type.name!r}; rename one")
    longest = MAX_KEY - _LONGEST_REST - len(workflow.name)
    for name in names:
        if len(name) > longest:
            _fail(workflow, f"actions: the type name {name[:40]!r}... has {len(name)} characters; it is part of every "
                f"idempotency key, which has room for {longest} here: shorten it")  # fmt: skip
    for model, adapter in workflow.actions.items():
        _check_executes(workflow, adapter, model, known)
        _check_undo(workflow, adapter, model.action_type, known)


def _check_undo(workflow: Any, adapter: Adapter, kind: ActionType, known: tuple[type[Action], ...]) -> None:
    undo = kind.undo
    if undo is None:
        return
    if undo.action_type.reversible:
        _fail(workflow, f"actions: {undo.action_type.name} undoes another action, so say reversible=False there")
    try:
        check_undo(kind)
    except DefinitionError as error:
        _fail(workflow, f"actions: {error}")
    if undo not in workflow.actions:
        _check_executes(workflow, adapter, undo, known)


def _check_executes(workflow: Any, adapter: Adapter, model: type[Action], known: tuple[type[Action], ...]) -> None:
    try:
        adapter.check_executes(model, known)
    except DefinitionError as error:
        _fail(workflow, f"actions: {error}")


def _check_records(workflow: Any) -> None:
    if not isinstance(workflow.records, Mapping):
        _fail(workflow, 'records: map names to look-ups: records={"orders": Orders()}')
    for name, service in workflow.records.items():
        if not isinstance(service, Records):
            _fail(workflow, f"records: {name!r} must be an instance of a subclass of fs.Records")
    for model in _all_actions(workflow):
        for parameter, authority in model.action_type.authority.items():
            if authority.record is not None and authority.record not in workflow.records:
                where, name = f"{model.__name__}.{parameter}", authority.record
                _fail(workflow, f'records: {where} rests on {name!r}; add it: records={{"{name}": ...}}')


def _all_actions(workflow: Any) -> Iterator[type[Action]]:
    """The listed action classes, then the undo classes that are not listed."""
    yield from workflow.actions
    for model in workflow.actions:
        if model.action_type.undo is not None and model.action_type.undo not in workflow.actions:
            yield model.action_type.undo


def _fail(workflow: Any, problem: str) -> NoReturn:
    module = sys.modules.get(getattr(workflow.request, "__module__", ""))
    file = getattr(module, "__file__", None)
    raise DefinitionError(f"{file or 'interactive'}: workflow {workflow.name!r}, {problem}")
