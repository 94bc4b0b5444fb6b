"""Bring a database to the schema this code knows: roles, tables by Alembic, then functions, views and grants anew."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import sqlalchemy as sa

from policies.effects import EFFECT_TRANSITIONS
from policies.errors import SchemaMismatch
from policies.states import PARKED, TRANSITIONS
from resources.store.contention import again_when_contended
from resources.store.engine import transaction

if TYPE_CHECKING:
    from alembic.config import Config

HERE = Path(__file__).parent
SCHEMA_REVISION = "0002"
"""The revision this code was written for."""

KNOWN_REVISIONS = frozenset({SCHEMA_REVISION, f"{int(SCHEMA_REVISION) + 1:04}"})
"""Revisions this code can run on: its own, and the next one, which only adds: what it replaces goes a release later."""

OWNER = "failsafe_owner"
DUTIES = ("failsafe_intake", "failsafe_worker", "failsafe_reviewer", "failsafe_operator", "failsafe_auditor")

_UPGRADE_LOCK = 7_205_759_403_792_793
"""Advisory lock key: two upgrades at once take turns."""

_TURN_TIMEOUT = "60s"
"""How long an upgrade waits for another one to end."""

LOCK_TIMEOUT = "3s"
"""How long it waits for a table, and so lets writers wait behind it."""

_LOG_NO_PARAMETERS = "{log_parameter_max_length=0,log_parameter_max_length_on_error=0}"

_FUNCTION_FILES = (
    "audit",
    "principals",
    "epochs",
    "standing",
    "eligibility",
    "delegations",
    "approvals",
    "edits",
    "notices",
    "desk",
    "intake",
    "leases",
    "providers",
    "effects",
    "late",
    "outbox",
    "operator",
    "pauses",
    "parked",
    "inputs",
    "views",
)
"""In the order of their use of each other."""


def upgrade(admin_url: str) -> str:
    """Upgrade the schema `failsafe` in the database at `admin_url` and return its revision. Safe to repeat and to race.

    Needs a login that may create roles and schemas. Runs beside live work, in one transaction: a lock is waited for no
    longer than 3 s, so that writers do not queue for long behind it while it queues behind a long transaction; where it
    is not to be had, or workers and the upgrade block each other, all of it is tried again, five times.

    Raises:
        StoreContended: a lock was not to be had; upgrade again when the long transaction has ended.
    """
    _upgrade(sa.create_engine(admin_url, poolclass=sa.NullPool, hide_parameters=True))
    return SCHEMA_REVISION


@again_when_contended
def _upgrade(engine: sa.Engine) -> None:
    with transaction(engine) as plain:
        connection = plain.execution_options(no_parameters=True)  # a % in a function body is not a placeholder
        connection.exec_driver_sql(f"set local lock_timeout = '{_TURN_TIMEOUT}'")
        connection.exec_driver_sql(f"select pg_advisory_xact_lock({_UPGRADE_LOCK})")
        connection.exec_driver_sql(f"set local lock_timeout = '{LOCK_TIMEOUT}'")
        _create_roles(connection)
        connection.exec_driver_sql(f"create schema if not exists failsafe authorization {OWNER}")
        connection.exec_driver_sql(f"set local role {OWNER}")
        connection.exec_driver_sql("set local search_path = failsafe")
        _run_versions(connection)
        for name in _FUNCTION_FILES:
            connection.exec_driver_sql((HERE / "functions" / f"{name}.sql").read_text())
        connection.exec_driver_sql(guards_sql())
        connection.exec_driver_sql((HERE / "functions" / "grants.sql").read_text())


def current_revision(connection: sa.Connection) -> str | None:
    """The schema revision of the connected database, or None where there is no schema."""
    if connection.scalar(sa.text("select to_regclass('failsafe.schema_revision')")) is None:
        return None
    revision: str | None = connection.scalar(sa.text("select version_num from failsafe.schema_revision"))
    return revision


def require_known_revision(connection: sa.Connection) -> None:
    """Stop, loudly, before touching rows of a schema this code does not know.

    Raises:
        SchemaMismatch: the database's revision is none that this code can run on.
    """
    revision = current_revision(connection)
    if revision not in KNOWN_REVISIONS:
        raise SchemaMismatch(
            f"the database is at schema revision {revision or 'none'}, this code runs on "
            f"{', '.join(sorted(KNOWN_REVISIONS))}; run `failsafe db upgrade` or deploy the matching version"
        )


def guards_sql() -> str:
    """The guard triggers, with the transition lists of `policies` written in."""
    requests = sorted(f"{state}>{event}>{step.to}" for (state, event), step in TRANSITIONS.items())
    effects = sorted(f"{before}>{after}" for before, after in EFFECT_TRANSITIONS)
    template = (HERE / "functions" / "guards.sql.template").read_text()
    lists: dict[str, Sequence[str]] = {
        "request_transitions": requests,
        "effect_transitions": effects,
        "parked": sorted(PARKED),
    }
    for name, values in lists.items():
        template = template.replace(f"{{{name}}}", _literals(values))
    return template


def _literals(values: Sequence[str]) -> str:
    return ", ".join(f"'{value}'" for value in values)


def _create_roles(connection: sa.Connection) -> None:
    """Roles belong to the whole server, so another database may have made them already, or be making them now."""
    for role, options in ((OWNER, "nologin"), *((duty, "login") for duty in DUTIES)):
        connection.exec_driver_sql(
            f"do $$ begin create role {role} {options};"
            " exception when duplicate_object or unique_violation then null; end $$"
        )
    for duty in DUTIES:
        # A bound parameter can be a credential: keep it out of the server's log. Only a superuser may set this. What is
        # set already is left alone: two databases of one server that alter a role at once stand in each other's way.
        connection.exec_driver_sql(
            "do $$ begin if not exists (select from pg_db_role_setting s where s.setdatabase = 0"
            f" and s.setrole = '{duty}'::regrole and s.setconfig @> '{_LOG_NO_PARAMETERS}') then"
            f" alter role {duty} set log_parameter_max_length = 0;"
            f" alter role {duty} set log_parameter_max_length_on_error = 0;"
            " end if; exception when insufficient_privilege then null; end $$"
        )
    connection.exec_driver_sql(f"grant {OWNER}, {', '.join(DUTIES)} to current_user")


def _run_versions(connection: sa.Connection) -> None:
    from alembic import command  # costs half a second: only an upgrade pays it

    command.upgrade(_configuration(connection), SCHEMA_REVISION)


def _configuration(connection: sa.Connection) -> Config:
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(HERE / "migrations"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    return config
