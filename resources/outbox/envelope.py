"""An event as its receivers see it: a CloudEvent 1.0 in JSON."""

from __future__ import annotations

import json
from datetime import UTC
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from resources.outbox.events import OutboxEvent

CONTENT_TYPE: Final = "application/cloudevents+json; charset=utf-8"


def envelope(event: OutboxEvent, source: str) -> bytes:
    """The same bytes at every attempt.

    `id` is what consumers know a repeated event by; `sequence` orders the events of one `subject` and has gaps. It is
    padded, because it is compared as text.
    """
    attributes = {
        "specversion": "1.0",
        "id": str(event.id),
        "source": source,
        "type": event.type,
        "subject": f"{event.aggregatetype}/{event.aggregateid}",
        "time": event.created_at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z"),
        "sequence": f"{event.sequence:019d}",
        "datacontenttype": "application/json",
    }
    # The payload is taken as it is: a number read here could be written differently.
    return f'{json.dumps(attributes)[:-1]}, "data": {event.payload}}}'.encode()
