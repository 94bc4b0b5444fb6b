"""Facts that may be true of one request only, and values seen before: named by hashes the store can compare."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from typing import Any

from policies.hashing import CLAIM, canonical_bytes, domain_hash
from policies.policy import Policy
from policies.sealing import Sealed, SealedAction


def claim_values(sealed: Sealed, policy: Policy) -> dict[str, bytes]:
    """The hash of what each kind of claim is about, by kind.

    Texts are compared without regard to case, white space at the ends and in runs, and Unicode compatibility forms, so
    that two scans of one receipt make the same claim. A claim with a parameter that the proposal lacks is not made.
    """
    claims = {}
    for kind, paths in policy.claims.items():
        values = [_values(sealed, path) for path in paths]
        if all(values):
            claims[kind] = _value_hash(kind, [[_folded(value) for _, value in found] for found in values])
    return claims


def claimants(sealed: Sealed, policy: Policy) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each kind of claim that more than one action of the proposal makes, with their ids."""
    for kind, paths in policy.claims.items():
        for path in paths:
            action_ids = tuple(action.action_id for action, _ in _values(sealed, path))
            if len(action_ids) > 1:
                yield kind, action_ids
                break


def novel_values(sealed: Sealed, policy: Policy) -> dict[str, tuple[bytes, ...]]:
    """For each rule on novelty, by its path `<action type>.<parameter>`: the hashes of the values proposed."""
    novel = {}
    for rule in policy.tiers:
        if rule.novel is not None:
            path = rule.full_path(rule.novel)
            novel[path] = tuple(_value_hash(path, _folded(value)) for _, value in _values(sealed, path))
    return novel


def _values(sealed: Sealed, path: str) -> list[tuple[SealedAction, Any]]:
    action_type, _, parameter = path.rpartition(".")
    return [
        (action, action.values[parameter])
        for action in sealed.actions
        if action.action_type.name == action_type and action.values.get(parameter) is not None
    ]


def _value_hash(kind: str, value: Any) -> bytes:
    return domain_hash(CLAIM, canonical_bytes([kind, value]))


def _folded(value: Any) -> Any:
    if isinstance(value, str):
        return " ".join(unicodedata.normalize("NFKC", value).casefold().split())
    if isinstance(value, list):
        return [_folded(item) for item in value]
    if isinstance(value, dict):
        return {name: _folded(item) for name, item in value.items()}
    return value
