"""What a pause can be about, and what it would reach, before anybody pauses it."""

from __future__ import annotations

import sqlalchemy as sa

from resources.store.engine import Duty, engine_for, transaction
from resources.store.pauses import Reach, Scope
from resources.store.queries import query


def pausable(database_url: str) -> dict[Scope, list[str]]:
    """The names that a pause of each scope may have, as the store knows them."""
    found: dict[Scope, list[str]] = {scope: [] for scope in Scope}
    with transaction(engine_for(Duty.OPERATOR, database_url)) as connection:
        for row in connection.execute(query("pausable_names")):
            found[Scope(row.scope)].append(row.name)
    return found


def would_reach(database_url: str, scope: Scope, name: str) -> Reach:
    """What a pause would hold back at this moment, and the effects it would come too late for."""
    with transaction(engine_for(Duty.OPERATOR, database_url)) as connection:
        statement = sa.text("select held_back, in_flight from pause_reach(:scope, :name)")
        return Reach(*connection.execute(statement, {"scope": scope.value, "name": name}).one())
