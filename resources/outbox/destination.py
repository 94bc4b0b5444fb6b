"""Where events are published to, as the publisher sees it: a webhook, or people's mail."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol, Self

if TYPE_CHECKING:
    from resources.outbox.events import OutboxEvent

LONGEST_TIMEOUT: Final = 30.0
"""Seconds of one delivery at most."""


@dataclass(frozen=True, slots=True)
class NotTaken:
    """Why the receiver has not taken an event, as far as it said."""

    reason: str
    refused: bool = False
    """It does not want this very event; otherwise the receiver itself is in trouble, or cannot be reached."""
    retry_after: float | None = None


class OpenDestination(Protocol):
    """A destination that is ready to deliver, shared by threads; leaving its block closes it."""

    def __enter__(self) -> Self:
        """Ready."""

    def __exit__(self, *_: object) -> None:
        """Closed."""

    def deliver(self, event: OutboxEvent) -> NotTaken | None:
        """Delivers one event, never longer than the timeout; None: it is taken, or there is nothing to say of it."""


class Destination(Protocol):
    """What `fs.definitions(..., outbox=...)` takes."""

    @property
    def timeout_seconds(self) -> float:
        """Longest time of one whole delivery."""

    @property
    def connections(self) -> int:
        """Deliveries at once."""

    def opened(self) -> OpenDestination:
        """Ready to deliver, its variables resolved.

        Raises:
            DefinitionError: a variable is missing, or what it holds does not fit.
        """
