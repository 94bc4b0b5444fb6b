"""Alembic's entry: runs the versions on the connection that `resources.store.migrate` opened, in its transaction."""

from __future__ import annotations

from alembic import context

connection = context.config.attributes["connection"]
context.configure(connection=connection, version_table="schema_revision", version_table_schema="failsafe")
context.run_migrations()
