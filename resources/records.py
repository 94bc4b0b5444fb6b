"""Trusted look-ups: the records that authorise what a model proposes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from policies.records import Record

__all__ = ["Record", "Records"]


class Records:
    """A trusted service: subclass it and define `find`, or `find_many` as well where one query can serve many keys.

    It is read again right before an effect, so answer from the source, not from a cache.
    """

    def find(self, key: str) -> Record | None:
        """The record with this key, or None.

        Whatever it raises counts as "not available now" and is tried again: for ever while the service answers for no
        key, in bounded attempts for a key that it fails for while it answers for others.
        """
        raise NotImplementedError

    def find_many(self, keys: Iterable[str]) -> Mapping[str, Record | None]:
        """The records of many keys; a key that is left out counts as not found."""
        return {key: self.find(key) for key in keys}
