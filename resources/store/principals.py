"""Principals: who may act. Tokens are generated in the database, shown once, and kept there only as a hash."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from policies.errors import FailsafeError
from resources.store.engine import Duty, engine_for, transaction
from resources.store.queries import query

Kind = Literal["human", "service"]

Limits = Mapping[str, Mapping[str, int]]
"""For each action type that a person may decide on, the largest amount in minor units of each currency."""


@dataclass(frozen=True, slots=True)
class Principal:
    """One principal, without its credential."""

    id: UUID
    kind: Kind
    name: str
    external_id: str | None
    roles: list[str]
    limits: Limits | None
    created_at: datetime
    disabled_at: datetime | None


@dataclass(frozen=True, slots=True)
class NewPrincipal:
    """A principal just created, with the token that is shown this once."""

    id: UUID
    token: str = field(repr=False)


def create_principal(
    database_url: str, *, kind: Kind, name: str, external_id: str | None = None, roles: Sequence[str] = ()
) -> NewPrincipal:
    """Create a principal and its token.

    Args:
        database_url: where the store is.
        kind: a `human` may vote, a `service` never does.
        name: how people call it, unique.
        external_id: who it is elsewhere (an employee number), compared with subjects and payees.
        roles: what it may do; a policy names roles.

    Raises:
        FailsafeError: the name or external id is taken, or empty or too long.
    """
    arguments = {"kind": kind, "name": name, "external_id": external_id, "roles": list(roles)}
    with transaction(engine_for(Duty.OPERATOR, database_url)) as connection:
        try:
            row = connection.execute(query("create_principal"), arguments).one()
        except IntegrityError as error:
            raise FailsafeError(
                f"no principal {name!r} was created: name and external id must be 1 to 200 characters and not in use; "
                "see `failsafe principals list`"
            ) from error
    return NewPrincipal(row.principal_id, row.token)


def list_principals(database_url: str) -> list[Principal]:
    """All principals in the order of their names."""
    with transaction(engine_for(Duty.OPERATOR, database_url)) as connection:
        return [Principal(*row) for row in connection.execute(query("list_principals"))]


def disable_principal(database_url: str, name: str) -> bool:
    """End what `name` may do, its sessions included; False if there is no such enabled principal.

    Once this returns, no effect starts on its authority and its votes no longer count.
    """
    return _changed(database_url, "select disable_principal(:name)", {"name": name})


def set_roles(database_url: str, name: str, roles: Sequence[str]) -> bool:
    """Replace the roles of `name`; False if there is no such principal."""
    return _changed(
        database_url, "select set_roles(:name, cast(:roles as text[]))", {"name": name, "roles": list(roles)}
    )


def set_limits(database_url: str, name: str, limits: Limits | None) -> bool:
    """Bound what `name` may decide on, beside its roles; None lifts the bounds. False if there is no such principal.

    An action type or currency that the limits do not name is not covered. Votes that were cast are held against them
    too, until the first effect starts.
    """
    arguments = {"name": name, "limits": None if limits is None else json.dumps(limits)}
    return _changed(database_url, "select set_limits(:name, cast(cast(:limits as text) as json))", arguments)


def _changed(database_url: str, statement: str, arguments: Mapping[str, object]) -> bool:
    with transaction(engine_for(Duty.OPERATOR, database_url)) as connection:
        changed: bool = connection.execute(sa.text(statement), arguments).scalar_one()
    return changed
