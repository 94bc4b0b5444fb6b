"""Sealed proposals that an earlier step of the same run has read: the next one need not read them again."""

from __future__ import annotations

from policies.catalogue import Catalogue
from policies.sealing import Sealed, unseal

MAX_BYTES = 12_000_000
"""Canonical bytes of the proposals kept: ten thousand small ones. What is read from them takes four times as much."""


class SealedMemory:
    """Reads sealed proposals; the same bytes give the same proposal."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._known: dict[bytes, Sealed] = {}
        self._bytes = 0

    def read(self, canonical: bytes) -> Sealed:
        """What `unseal` reads from stored canonical bytes.

        Raises:
            DefinitionError, CanonicalFormError: as `unseal` does.
        """
        sealed = self._known.get(canonical)
        if sealed is None:
            sealed = unseal(canonical, self._catalogue)
            # Once full it keeps the first ones: each step walks the batch in the same order, so what would have to go
            # for the last one is just what the next step asks for.
            if self._bytes + len(canonical) <= MAX_BYTES:
                self._known[canonical] = sealed
                self._bytes += len(canonical)
        return sealed
