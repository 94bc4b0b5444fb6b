"""Dead letters: parked requests with the record of why."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

import sqlalchemy as sa

from resources.store.moves import plain_text
from resources.store.queries import query

MAX_FAILURE = 2_000
"""Length of `dead_letters.failure`."""


def open_dead_letters(connection: sa.Connection, step: str, failures: Sequence[tuple[uuid.UUID, str]]) -> None:
    """Open a dead letter for each (request, failure); one that is open already stays as it is."""
    if failures:
        connection.execute(
            query("open_dead_letters"),
            {
                "ids": [request_id for request_id, _ in failures],
                "steps": [step] * len(failures),
                "failures": [plain_text(failure, MAX_FAILURE) for _, failure in failures],
            },
        )
