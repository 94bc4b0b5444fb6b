"""What a provider can say about an effect, and what an adapter promises about its provider."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any


@dataclass(frozen=True, slots=True)
class Done:
    """The effect happened. `reference` is the provider's own id; `result` holds only the fields worth keeping."""

    reference: str
    result: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Refused:
    """The provider definitely did not and will not do it under this key: a business answer, never retried unchanged."""

    code: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Semantics:
    """What a provider offers; the level of the promise made for its effects follows from it.

    Attributes:
        honours_key: how long the provider remembers an idempotency key, counted from the first send; None: not at all.
        lookup: an effect can be found again by its key.
        visible_after: how long after an effect a lookup may still miss it.
        shares_transaction: effect and key are written in one transaction of the target, so a repeat is impossible.
        timeout: longest time one call may take.
        concurrency: calls the provider takes at once from one worker.
        max_in_flight: calls it takes at once from all workers together; None: as many as come.
        per_second: calls it takes in a second from all workers together; None: as many as come.
    """

    honours_key: timedelta | None = None
    lookup: bool = False
    visible_after: timedelta = timedelta(0)
    shares_transaction: bool = False
    timeout: timedelta = timedelta(seconds=10)
    concurrency: int = 4
    max_in_flight: int | None = None
    per_second: float | None = None

    @property
    def blind(self) -> bool:
        """Nothing tells what became of a call whose answer was lost: only a person can settle it, or an assumption."""
        return self.honours_key is None and not self.lookup and not self.shares_transaction
