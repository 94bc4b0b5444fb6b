"""A policy: versioned rules and decisions, checked whole before any of it is used."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date
from functools import cached_property
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import Field, ValidationError, model_validator

from policies.actions import ActionType
from policies.catalogue import Catalogue
from policies.errors import DefinitionError
from policies.hashing import POLICY, canonical_bytes, domain_hash
from policies.policy_errors import definition_error
from policies.rules import Amounts, Decision, Demand, Part, Rule, Text
from policies.tiers import Tier

Mode = Literal["shadow", "live"]


class Policy(Part):
    """The rules in force for one workflow. Build it with `load`, which says what is wrong and how to right it.

    Attributes:
        version: part of every assessment.
        mode: `shadow` records what would have happened and executes nothing; `live` executes. No default.
        permissions: for each action type, the roles that may initiate it. Left out whole, every initiator may; given,
            an action type that it does not name is permitted to nobody.
        limits: for each action type, the largest amount (one per currency); more is refused.
        tiers: the rules; every one that fires adds its reason and the highest tier wins; none: low.
        claims: facts that may be true of one request only: the parameters that make them up.
        decisions: what each tier means; all four must appear.
    """

    version: Text
    mode: Mode
    permissions: dict[str, tuple[Text, ...]] | None = None
    limits: dict[str, Amounts] = Field(default_factory=dict)
    tiers: tuple[Rule, ...] = ()
    claims: dict[str, Annotated[tuple[Text, ...], Field(min_length=1)]] = Field(default_factory=dict)
    decisions: dict[Tier, Decision]

    @model_validator(mode="after")
    def _is_complete(self) -> Self:
        absent = [tier for tier in Tier if tier not in self.decisions]
        if absent:
            raise ValueError(f"decisions must name every tier; add {', '.join(absent)}: auto, refuse or a review")
        ruled = {rule.claim for rule in self.tiers if rule.claim is not None}
        for kind in sorted(ruled - self.claims.keys()):
            raise ValueError(f"a rule speaks of claim {kind!r}; say under claims which parameters make it up")
        for kind in sorted(self.claims.keys() - ruled):
            raise ValueError(f"no rule says what a taken claim {kind!r} means; add {{tier: ..., claim: {kind}, ...}}")
        return self

    @classmethod
    def load(cls, document: dict[str, Any], where: str) -> Policy:
        """The policy that a parsed YAML document holds; `where` names the file.

        Raises:
            DefinitionError: naming the file, the rule and the remedy of every mistake found.
        """
        _refuse_foreign(document, where, "")
        try:
            return cls.model_validate_json(json.dumps(document))
        except ValidationError as error:
            raise definition_error(error, document, where, _KEYS) from None

    @cached_property
    def hash(self) -> str:
        """Hex hash of everything the policy says."""
        return domain_hash(POLICY, canonical_bytes(self.model_dump(mode="json"))).hex()


_KEYS = {"": tuple(Policy.model_fields), "tiers": tuple(Rule.model_fields), "review": tuple(Demand.model_fields)}


def check_against(policy: Policy, catalogue: Catalogue, where: str) -> None:
    """Check that everything the policy names exists in the catalogue.

    Raises:
        DefinitionError: naming the file, the place and the remedy of every mistake found.
    """
    mistakes = [f"{where}: {place}: {problem}" for place, problem in _misfits(policy, catalogue)]
    if mistakes:
        raise DefinitionError("\n".join(mistakes))


def _misfits(policy: Policy, catalogue: Catalogue) -> Iterator[tuple[str, str]]:
    kinds = {name: entry.action_type for name, entry in catalogue.entries.items() if name not in catalogue.undo_types}
    known = ", ".join(sorted(kinds))
    for index, rule in enumerate(policy.tiers):
        for problem in _rule_misfits(rule, kinds, known):
            yield f"tiers[{index}] ({rule.because})", problem
    for section, names in (("limits", policy.limits), ("permissions", policy.permissions or {})):
        for name in sorted(names.keys() - kinds.keys()):
            yield f"{section}.{name}", f"this action is not in the catalogue; use one of {known}"
    if policy.permissions is not None:
        for name in sorted(kinds.keys() - policy.permissions.keys()):
            yield "permissions", f"{name} is not named, so nobody could initiate it; add it with its roles"
    for kind, paths in policy.claims.items():
        for path in paths:
            if _parameter(path, kinds) is None:
                yield f"claims.{kind}", f"{path!r} is no parameter of the catalogue; write <action type>.<parameter>"


def _rule_misfits(rule: Rule, kinds: dict[str, ActionType], known: str) -> Iterator[str]:
    if rule.action is not None and rule.action not in kinds:
        yield f"action {rule.action!r} is not in the catalogue; use one of {known}"
        return
    for path in (rule.field, rule.as_of, rule.missing, rule.novel):
        if path is None:
            continue
        full = rule.full_path(path)
        found = _parameter(full, kinds)
        if found is None:
            yield f"{full!r} is no parameter of the catalogue; write <action type>.<parameter>"
        elif path in (rule.field, rule.as_of) and not _may_be_date(*found):
            yield f"older_than needs a date, and {full!r} is none; name a date parameter"


def _parameter(path: str, kinds: dict[str, ActionType]) -> tuple[ActionType, str] | None:
    action_type, _, parameter = path.rpartition(".")
    kind = kinds.get(action_type)
    return (kind, parameter) if kind is not None and parameter in kind.model.model_fields else None


def _may_be_date(kind: ActionType, parameter: str) -> bool:
    annotation = kind.model.model_fields[parameter].annotation
    return any(isinstance(one, type) and issubclass(one, date) for one in (annotation, *get_args(annotation)))


def _refuse_foreign(value: Any, where: str, path: str) -> None:
    """Refuse what YAML reads and JSON does not have: dates, keys that are not text, sets."""
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise DefinitionError(f"{where}: {path or 'the policy'}: key {key!r} is not text; put it in quotes")
            _refuse_foreign(item, where, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _refuse_foreign(item, where, f"{path}[{index}]")
    elif not isinstance(value, str | int | float | None):
        raise DefinitionError(f"{where}: {path}: YAML reads {value} as {type(value).__name__}; put it in quotes")
    elif not path:
        raise DefinitionError(f"{where}: the policy is empty; write version, mode, tiers and decisions")
