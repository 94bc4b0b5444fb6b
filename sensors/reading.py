"""How a tick reads the store."""

from __future__ import annotations

from contextlib import AbstractContextManager

import sqlalchemy as sa

from resources.database_url import database_url
from resources.store.reading import reading

TICK_SECONDS = 20
"""Dagster gives a whole tick 60 s."""


def tick_reading() -> AbstractContextManager[sa.Connection]:
    """What the store says at this moment.

    An error fails the tick on purpose: Dagster shows it in red, with its remedy, where a skipped tick would hide an
    outage in grey. Nothing is lost by it, because a sensor keeps nothing between ticks; the next one looks again.

    Raises:
        StoreUnavailable: the database does not answer.
        SchemaMismatch: it is at a revision that this code does not know.
    """
    return reading(database_url(), seconds=TICK_SECONDS)
