"""The amounts of money that an action moves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from pydantic import BaseModel

from policies.actions import Action
from policies.money import Money


def amounts_in(action: Action) -> Iterator[tuple[str, Money]]:
    """Every amount among the action's parameters, nested ones included, with the parameter's name."""
    for name, value in action:
        for amount in _amounts(value):
            yield name, amount


def _amounts(value: Any) -> Iterator[Money]:
    if isinstance(value, Money):
        yield value
    elif isinstance(value, BaseModel):
        for _, item in value:
            yield from _amounts(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _amounts(item)
    elif isinstance(value, list | tuple | set | frozenset):
        for item in value:
            yield from _amounts(item)


def exceeds(amount: Money, limits: Iterable[Money]) -> bool | None:
    """Whether the amount, whatever its sign, is over the limit in its currency; None: no limit names that currency."""
    for limit in limits:
        if limit.currency == amount.currency:
            return abs(amount.minor) > limit.minor
    return None
