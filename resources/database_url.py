"""Which database dagster-failsafe uses when nobody names one in code."""

from __future__ import annotations

import os
from pathlib import Path

from sqlalchemy import NullPool, create_engine, text
from sqlalchemy.exc import IntegrityError, ProgrammingError

DATABASE = "failsafe"
"""The database on an embedded server; Dagster's own tables live in another beside it."""


def database_url() -> str:
    """FAILSAFE_DATABASE_URL, or else a database on an embedded server that this call starts unless it runs.

    That server lives in `.failsafe/dev` under DAGSTER_HOME or else the working folder, and goes on when this process
    ends. Raises StoreUnavailable if there is neither a URL nor the extra `embedded`.
    """
    if url := os.environ.get("FAILSAFE_DATABASE_URL"):
        return url
    from resources.embedded_postgres import EmbeddedPostgres  # a deployment with a URL has no such extra

    server = EmbeddedPostgres(Path(os.environ.get("DAGSTER_HOME") or Path.cwd()) / ".failsafe" / "dev")
    server.start()
    ensure_database(server.url(), DATABASE)
    return server.url(database=DATABASE)


def ensure_database(url_admin: str, name: str) -> None:
    """Create the database `name` unless it exists; `url_admin` is the SQLAlchemy URL of one who may create it."""
    engine = create_engine(url_admin, isolation_level="AUTOCOMMIT", poolclass=NullPool, hide_parameters=True)
    with engine.connect() as connection:
        if connection.scalar(text("select 1 from pg_database where datname = :name"), {"name": name}):
            return
        try:
            connection.execute(text(f"create database {engine.dialect.identifier_preparer.quote_identifier(name)}"))
        except (IntegrityError, ProgrammingError):
            # Another process made it between our question and our answer; anything else is an error to show.
            if not connection.scalar(text("select 1 from pg_database where datname = :name"), {"name": name}):
                raise
