"""The pause switch: by everything, workflow, action type or provider. What is paused starts no effect."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

import sqlalchemy as sa

from resources.store.engine import Duty, engine_for, transaction
from resources.store.operator import said
from resources.store.queries import query
from resources.store.votes import Session

EVERYTHING = "*"
"""The name that goes with the scope `everything`."""


class Scope(StrEnum):
    """What a pause is about."""

    EVERYTHING = "everything"
    WORKFLOW = "workflow"
    ACTION_TYPE = "action_type"
    PROVIDER = "provider"


@dataclass(frozen=True, slots=True)
class Reach:
    """Requests that a pause holds back now, and the keys of effects in flight, which it came too late for."""

    held_back: int
    in_flight: list[str]


@dataclass(frozen=True, slots=True)
class Pause:
    """One pause in force, with its reach now."""

    scope: Scope
    name: str
    paused_at: datetime
    paused_by: str
    reason: str
    reach: Reach


def pause(database_url: str, session: Session, scope: Scope, name: str, reason: str) -> Reach:
    """Start no effect in this scope any more, compensations included. Once it returns, nothing starts.

    Raises:
        RequestRefused: nothing is called so; nothing was paused.
        NotPermitted: no operator.
    """
    arguments = {"session": session.secret, "scope": scope.value, "name": name, "reason": said("reason", reason)}
    with transaction(engine_for(Duty.OPERATOR, database_url)) as connection:
        statement = sa.text("select held_back, in_flight from pause_work(:session, :scope, :name, :reason)")
        return Reach(*connection.execute(statement, arguments).one())


def resume(database_url: str, session: Session, scope: Scope, name: str, reason: str) -> bool:
    """Lift a pause; what it held back is due at once. False if there is no such pause. Raises NotPermitted."""
    arguments = {"session": session.secret, "scope": scope.value, "name": name, "reason": said("reason", reason)}
    with transaction(engine_for(Duty.OPERATOR, database_url)) as connection:
        statement = sa.text("select resume_work(:session, :scope, :name, :reason)")
        resumed: bool = connection.execute(statement, arguments).scalar_one()
        return resumed


def pauses(database_url: str) -> list[Pause]:
    """The pauses in force, oldest first."""
    with transaction(engine_for(Duty.OPERATOR, database_url)) as connection:
        return [
            Pause(
                Scope(row.scope),
                row.name,
                row.paused_at,
                row.paused_by,
                row.reason,
                Reach(row.held_back, row.in_flight),
            )
            for row in connection.execute(query("pauses_in_force"))
        ]
