"""Whether the database can keep what the plugin promises."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime

import sqlalchemy as sa

from console.checks import Check
from console.status import after_restore
from policies.errors import FailsafeError
from resources.database_url import database_url
from resources.store.engine import Duty, duty_url, transaction
from resources.store.migrate import KNOWN_REVISIONS, current_revision
from resources.store.restores import RestoreStanding

OLDEST_SERVER = 14
MAX_SKEW = 2.0
"""Seconds between the clocks that are worth a word. All times are the database's, so skew only confuses readers."""


def database_checks() -> list[Check]:
    """Look at the database of FAILSAFE_DATABASE_URL, or the embedded one, with the login that it names."""
    try:
        url = database_url()
        with transaction(_engine(url)) as connection:
            return list(_checks(connection, url))
    except FailsafeError as error:
        return [Check("database", "missing", _with_cause(error))]


def _with_cause(error: FailsafeError) -> str:
    """The error with what the driver said when it could not connect: host and user, never a password."""
    said = str(getattr(error.__cause__, "orig", "")).strip().splitlines()
    return f"{error}: {said[-1].strip()}" if said else str(error)


def _engine(url: str) -> sa.Engine:
    return sa.create_engine(url, poolclass=sa.NullPool, hide_parameters=True, connect_args={"connect_timeout": 10})


def _checks(connection: sa.Connection, url: str) -> Iterator[Check]:
    yield _version(connection)
    yield _encoding(connection)
    yield from _durability(connection)
    yield _clock(connection)
    yield _embedded()
    yield _schema(connection)
    yield from _duties(connection, url)
    yield from _restored(connection)
    yield _logging(connection)


def _version(connection: sa.Connection) -> Check:
    version = str(connection.scalar(sa.text("show server_version")))
    if int(version.partition(".")[0]) < OLDEST_SERVER:
        return Check("server", "missing", f"PostgreSQL {version}; {OLDEST_SERVER} or later is needed")
    return Check("server", "ok", f"PostgreSQL {version}")


def _encoding(connection: sa.Connection) -> Check:
    encoding = connection.scalar(sa.text("show server_encoding"))
    if encoding != "UTF8":
        return Check("encoding", "missing", f"{encoding}; create the database with encoding UTF8")
    return Check("encoding", "ok", "UTF8")


def _durability(connection: sa.Connection) -> Iterator[Check]:
    """Without these an effect already sent can be forgotten in a crash, and would be sent again."""
    for setting in ("fsync", "full_page_writes", "synchronous_commit"):
        value = connection.scalar(sa.text(f"show {setting}"))
        if value == "off":
            yield Check(
                setting, "missing", f"off: after a crash, effects that were sent may be forgotten; set {setting} = on"
            )
        else:
            yield Check(setting, "ok", f"{value}")


def _clock(connection: sa.Connection) -> Check:
    before = datetime.now(UTC)
    there: datetime = connection.execute(sa.text("select clock_timestamp()")).scalar_one()
    after = datetime.now(UTC)
    skew = max((there - after).total_seconds(), (before - there).total_seconds(), 0.0)
    if skew > MAX_SKEW:
        return Check("clock", "advised", f"{skew:.1f} s from the database's, which is the one that counts; set up NTP")
    return Check("clock", "ok", "agrees with the database's")


def _embedded() -> Check:
    if os.environ.get("FAILSAFE_DATABASE_URL"):
        return Check("server kind", "ok", "of your own, by FAILSAFE_DATABASE_URL")
    return Check(
        "server kind",
        "advised",
        "embedded: for trying out; it trusts every local process, so it proves duties but authenticates nobody",
    )


def _schema(connection: sa.Connection) -> Check:
    revision = current_revision(connection)
    if revision is None:
        return Check("schema", "missing", "there is none; run `failsafe db init`")
    if revision not in KNOWN_REVISIONS:
        return Check(
            "schema", "missing", f"revision {revision}, this code runs on {', '.join(sorted(KNOWN_REVISIONS))}; "
            "run `failsafe db upgrade` or deploy the matching version"
        )  # fmt: skip
    return Check("schema", "ok", f"revision {revision}")


def _restored(connection: sa.Connection) -> Iterator[Check]:
    """Whether anything waits since a restore."""
    if connection.scalar(sa.text("select to_regproc('failsafe.restore_standing')")) is None:
        return  # no schema, or one of another version: said above
    row = connection.execute(sa.text("select * from failsafe.restore_standing()")).one_or_none()
    if row is None:
        yield Check("restore", "ok", "none since the first request")
    elif row.waiting:
        yield Check(
            "restore", "advised", f"{after_restore(RestoreStanding(*row))}; runs do that, one batch after the other"
        )
    else:
        yield Check("restore", "ok", f"epoch {row.epoch}; what was open then is looked up")


def _duties(connection: sa.Connection, url: str) -> Iterator[Check]:
    existing = set(connection.scalars(sa.text("select rolname from pg_roles")))
    absent = [duty.value for duty in Duty if duty.value not in existing]
    if absent:
        yield Check("roles", "missing", f"{', '.join(absent)}; run `failsafe db init`")
        return
    logins: dict[str, list[str]] = {}
    for duty in Duty:
        try:
            with transaction(_engine(duty_url(duty, url))) as own:
                login, able = own.execute(
                    sa.text("select session_user, pg_has_role(session_user, :duty, 'member')"), {"duty": duty.value}
                ).one()
        except FailsafeError as error:
            yield Check("roles", "missing", f"{duty.value}: FAILSAFE_{duty.name}_URL cannot sign in: {error}")
            continue
        logins.setdefault(login, []).append(duty.value)
        if not able:
            yield Check(
                "roles",
                "advised",
                f"{login} cannot act as {duty.value} here; where that is wanted, set FAILSAFE_{duty.name}_URL",
            )
    shared = {login: duties for login, duties in logins.items() if len(duties) > 1}
    for login, duties in shared.items():
        yield Check(
            "duties",
            "advised",
            f"{login} signs in for {len(duties)} duties, which then guard against our faults only; give each its own "
            "login by FAILSAFE_INTAKE_URL, _WORKER_URL, _REVIEWER_URL, _OPERATOR_URL and _AUDITOR_URL",
        )
    if not shared:
        yield Check("duties", "ok", "each has its own login")


def _logging(connection: sa.Connection) -> Check:
    """A session secret is a bound parameter: it must not be written into the server's log."""
    silenced = connection.execute(
        sa.text(
            "select count(*) from pg_db_role_setting s join pg_roles r on r.oid = s.setrole"
            " where r.rolname like 'failsafe\\_%' and 'log_parameter_max_length=0' = any (s.setconfig)"
        )
    ).scalar_one()
    if silenced < len(Duty):
        return Check(
            "server log",
            "advised",
            "may show credentials if statements are logged; as a superuser: "
            "alter role failsafe_reviewer set log_parameter_max_length = 0, and so for each failsafe role",
        )
    return Check("server log", "ok", "never shows the parameters of our statements")
