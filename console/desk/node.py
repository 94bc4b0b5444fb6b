"""A review document as a template walks it: each value knows its place, so that showing it all can be proved."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from pydantic import ValidationError

from policies.money import Money
from policies.redaction import visible


class Node:
    """One value of the document and its place in it (a JSON pointer).

    Looking up what is not there gives a node without a place, which shows as nothing: a template never fails on a
    document of another version, it shows less, and `completeness` says so.
    """

    def __init__(self, value: Any, at: str | None = "") -> None:
        self.value = value
        self.at = at

    def __getitem__(self, name: str) -> Node:
        """The value under a key."""
        if isinstance(self.value, dict) and name in self.value:
            return Node(self.value[name], f"{self.at}/{_escaped(name)}")
        return Node(None, None)

    def __iter__(self) -> Iterator[Node]:
        """The items of a list."""
        if isinstance(self.value, list):
            for position, item in enumerate(self.value):
                yield Node(item, f"{self.at}/{position}")

    def __bool__(self) -> bool:
        return self.at is not None

    @property
    def is_leaf(self) -> bool:
        """Whether it is shown as one text: everything but a list or mapping with something in it."""
        return not (isinstance(self.value, dict | list) and self.value)

    @property
    def is_text(self) -> bool:
        """Whether it is a string."""
        return isinstance(self.value, str)

    @property
    def is_number(self) -> bool:
        """Whether it is a whole number."""
        return isinstance(self.value, int) and not isinstance(self.value, bool)

    @property
    def text(self) -> str:
        """The text of a leaf, with nothing hidden in it."""
        if isinstance(self.value, str):
            return visible(self.value) or "(empty)"
        if isinstance(self.value, bool):
            return "yes" if self.value else "no"
        return "none" if self.value is None or self.value in ([], {}) else json.dumps(self.value)

    @property
    def money(self) -> str | None:
        """An amount as people write it, where the value is one; its parts are leaves all the same."""
        try:
            return str(Money.model_validate(self.value)) if isinstance(self.value, dict) else None
        except ValidationError:
            return None

    def rest(self, *known: str) -> list[tuple[str, Node]]:
        """What stands under other keys than these: a later version's additions are shown as they are."""
        return [(visible(name), self[name]) for name in self.value or () if name not in known] if self._mapping else []

    def leaves(self, label: str = "") -> Iterator[tuple[str, Node]]:
        """Every leaf under this node, with its path as people read it."""
        if self.is_leaf:
            yield label, self
        elif isinstance(self.value, dict):
            for name in self.value:
                yield from self[name].leaves(f"{label}.{visible(name)}" if label else visible(name))
        else:
            for position, item in enumerate(self, start=1):
                yield from item.leaves(f"{label} {position}".strip())

    @property
    def _mapping(self) -> bool:
        return isinstance(self.value, dict)


def _escaped(name: str) -> str:
    """A key as part of a JSON pointer (RFC 6901)."""
    return visible(name).replace("~", "~0").replace("/", "~1")
