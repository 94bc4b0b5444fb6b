"""Reading the store for sensors and reports: with the auditor's login, so that neither can ever change anything."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import sqlalchemy as sa

from resources.store.engine import Duty, engine_for, transaction
from resources.store.migrate import require_known_revision


@contextmanager
def reading(database_url: str, *, seconds: int) -> Iterator[sa.Connection]:
    """One read-only transaction that sees one moment of the store throughout; a statement may take `seconds`.

    Raises:
        StoreUnavailable: the database does not answer.
        SchemaMismatch: it is at a revision that this code does not know.
    """
    with transaction(engine_for(Duty.AUDITOR, database_url)) as connection:
        connection.execute(sa.text("set transaction isolation level repeatable read, read only"))
        connection.execute(sa.text("select set_config('statement_timeout', :limit, true)"), {"limit": f"{seconds}s"})
        require_known_revision(connection)
        yield connection
