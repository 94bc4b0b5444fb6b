"""Who is signed in, as the database knows it: asked anew for every page, so that disabling somebody ends it at once."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

import sqlalchemy as sa

from resources.store.engine import Duty, engine_for, transaction
from resources.store.principals import Kind
from resources.store.queries import query
from resources.store.votes import Session


@dataclass(frozen=True, slots=True)
class TokenHolder:
    """The principal whose token was given."""

    principal_id: UUID
    kind: Kind
    name: str
    roles: list[str]


@dataclass(frozen=True, slots=True)
class SignedIn:
    """The principal whose live session was given."""

    secret: str = field(repr=False)
    principal_id: UUID
    kind: Kind
    name: str
    roles: list[str]
    expires_at: datetime

    @property
    def session(self) -> Session:
        """What a vote is cast with."""
        return Session(self.secret, self.principal_id, self.name, self.roles, self.expires_at)


def read_session(database_url: str, secret: str) -> SignedIn:
    """Who holds a session.

    Raises:
        NotAuthenticated: it is unknown or over, or its principal is disabled.
    """
    with transaction(engine_for(Duty.REVIEWER, database_url)) as connection:
        return SignedIn(secret, *connection.execute(query("session_holder"), {"secret": secret}).one())


def read_token_holder(database_url: str, token: str) -> TokenHolder:
    """Who holds a token.

    Raises:
        NotAuthenticated: it is unknown, or its principal is disabled.
    """
    with transaction(engine_for(Duty.INTAKE, database_url)) as connection:
        return TokenHolder(*connection.execute(query("token_holder"), {"token": token}).one())


def sign_out(database_url: str, secret: str) -> None:
    """End a session at once; no error if it is over already."""
    with transaction(engine_for(Duty.REVIEWER, database_url)) as connection:
        connection.execute(sa.text("select sign_out(:secret)"), {"secret": secret})
