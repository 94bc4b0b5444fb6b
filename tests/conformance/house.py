"""A store with its people, for a suite to run on."""

from __future__ import annotations

import itertools
from pathlib import Path

import sqlalchemy as sa

from resources.store import operator
from resources.store.votes import sign_in
from tests.ops import toy
from tests.postgres import Database


class House:
    """A store and its people: an agent's service that submits, two leads who decide, an operator who can cancel."""

    def __init__(self, database: Database, folder: Path) -> None:
        self.database = database
        self.url = database.url()
        self.folder = folder
        self.agent = toy.principal(self.url, "agent", ["agent"])
        self.reviewer_url = database.url("failsafe_reviewer")
        self.leads = [
            sign_in(self.reviewer_url, toy.principal(self.url, name, ["lead"], kind="human"))
            for name in ("ida", "noor")
        ]
        self.operator_url = database.url("failsafe_operator")
        self.operator = operator.sign_in(self.operator_url, toy.principal(self.url, "olga", ["operator"], kind="human"))
        self.numbers = itertools.count(1)
        options = {"options": "-c search_path=failsafe"}
        self._superuser = sa.create_engine(self.url, poolclass=sa.NullPool, connect_args=options)

    def execute(self, statement: str, **values: object) -> None:
        """Execute a statement that no duty binds: to let time pass, or to take a guard away."""
        with self._superuser.begin() as connection:
            connection.execute(sa.text(statement), values)

    def replace(self, function: str, *changes: tuple[str, str]) -> None:
        """Change texts, each of which occurs once, in a function of the store."""
        definition = sa.text("select pg_get_functiondef(p.oid) from pg_proc p where p.proname = :name")
        with self._superuser.begin() as connection:
            source: str = connection.execute(definition, {"name": function}).scalar_one()
        for old, new in changes:
            assert source.count(old) == 1, f"{function} has {old!r} {source.count(old)} times"
            source = source.replace(old, new)
        with self._superuser.begin() as connection:
            connection.exec_driver_sql(source.replace("%", "%%"))
