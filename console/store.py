"""The store that a command talks to."""

from __future__ import annotations

from resources.database_url import database_url
from resources.store.engine import Duty, engine_for, transaction
from resources.store.migrate import require_known_revision


def store_url(duty: Duty) -> str:
    """The URL of a store that can be reached as `duty` and has a schema this code knows.

    Raises:
        StoreUnavailable: it cannot be reached.
        SchemaMismatch: it has no schema yet or one of another version.
    """
    url = database_url()
    with transaction(engine_for(duty, url)) as connection:
        require_known_revision(connection)
    return url
