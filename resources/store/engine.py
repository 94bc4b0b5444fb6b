"""Connections by duty: every part of the plugin logs in as the role whose duty it does, never as more."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum

import sqlalchemy as sa
from psycopg.types.array import ListBinaryDumper
from sqlalchemy.exc import DBAPIError, DisconnectionError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolExhausted
from sqlalchemy.pool import ConnectionPoolEntry

from policies.errors import (
    FailsafeError,
    NotAuthenticated,
    NotPermitted,
    NotPossibleNow,
    OperationConflict,
    RequestRefused,
    SchemaMismatch,
    StoreContended,
    StoreUnavailable,
    UnknownTransition,
    VoteRefused,
)


class Duty(StrEnum):
    """The login roles."""

    INTAKE = "failsafe_intake"
    WORKER = "failsafe_worker"
    REVIEWER = "failsafe_reviewer"
    OPERATOR = "failsafe_operator"
    AUDITOR = "failsafe_auditor"


_OPTIONS = " ".join(
    f"-c {setting}"
    for setting in (
        "search_path=failsafe",
        # No call waits for ever: a hung statement would hold its locks while leases run out beside it.
        "statement_timeout=120s",
        "lock_timeout=20s",
        "idle_in_transaction_session_timeout=120s",
        # A plan cached while a table was empty is ruinous once it is not; planning a chunk costs a millisecond.
        "plan_cache_mode=force_custom_plan",
        "jit=off",
        # Rows are found by key: the default of 4 makes the planner read small tables whole instead.
        "random_page_cost=1.1",
    )
)


def duty_url(duty: Duty, base_url: str) -> str:
    """The URL to log in with: `FAILSAFE_WORKER_URL` and its like where set, otherwise `base_url`."""
    return os.environ.get(f"FAILSAFE_{duty.name}_URL", base_url)


REST_SECONDS = 5.0
"""A pooled connection that was not used for longer is asked whether it still lives."""

POOL_SECONDS = 30.0
"""How long a thread waits for one of this process's connections, where all are in use."""

_engines: dict[tuple[str, str], sa.Engine] = {}


def close_engines() -> None:
    """Close every pooled connection of this process, as before its database is dropped or it forks."""
    while _engines:
        _engines.popitem()[1].dispose()


def engine_for(duty: Duty, base_url: str) -> sa.Engine:
    """A pooled engine whose sessions act as `duty`.

    A login that is not that role itself takes it on by SET ROLE, so one URL serves every duty where separate logins are
    not set up; then the duties guard against our own faults only, and `failsafe doctor` says so.
    """
    url = duty_url(duty, base_url)
    known = _engines.get((duty.value, url))
    return known or _engines.setdefault((duty.value, url), _new_engine(duty, url))


def _new_engine(duty: Duty, url: str) -> sa.Engine:
    engine = sa.create_engine(
        url,
        hide_parameters=True,
        pool_size=4,
        max_overflow=8,
        pool_timeout=POOL_SECONDS,
        connect_args={"options": _OPTIONS, "connect_timeout": 10, "application_name": duty.value},
    )

    @sa.event.listens_for(engine, "connect")
    def take_on_duty(connection: sa.engine.interfaces.DBAPIConnection, _record: object) -> None:
        cursor = connection.cursor()
        # Two days are 48 hours; in a zone that changes its clocks meanwhile they would be 47 or 49. Set here, because a
        # PGTZ in the environment goes before the options.
        cursor.execute("select session_user = %s, set_config('timezone', 'UTC', false)", (duty.value,))
        row = cursor.fetchone()
        if row is not None and not row[0]:
            cursor.execute(f"set role {duty.value}")
        cursor.close()
        # A chunk goes as arrays. Their text form escapes every byte, which costs more than all judging of the chunk.
        connection.adapters.register_dumper(list, ListBinaryDumper)
        connection.commit()

    @sa.event.listens_for(engine, "checkin")
    def note_use(_connection: object, record: ConnectionPoolEntry) -> None:
        record.info["used_at"] = time.monotonic()

    @sa.event.listens_for(engine, "checkout")
    def ask_after_rest(
        connection: sa.engine.interfaces.DBAPIConnection, record: ConnectionPoolEntry, _proxy: object
    ) -> None:
        # Asked before every transaction, it would cost a round trip and a commit for each of ours.
        if time.monotonic() - record.info.get("used_at", time.monotonic()) > REST_SECONDS:
            try:
                engine.dialect.do_ping(connection)
            except engine.dialect.loaded_dbapi.Error as error:
                raise DisconnectionError from error  # the pool opens a new one

    return engine


@contextmanager
def transaction(engine: sa.Engine) -> Iterator[sa.Connection]:
    """One transaction; database errors leave it as ours, with SQLSTATE and constraint but without parameters."""
    try:
        with engine.begin() as connection:
            yield connection
    except DBAPIError as error:
        raise translated(error) from error
    except PoolExhausted as error:
        raise StoreUnavailable(
            f"no connection of this process was free within {POOL_SECONDS:g} s: let fewer threads work at once;"
            f" then run again, {_AS_BEFORE}"
        ) from error


_BY_SQLSTATE: dict[str, type[FailsafeError]] = {
    "FS001": NotPermitted,
    "FS002": UnknownTransition,
    "FS400": RequestRefused,
    "FS401": NotAuthenticated,
    "FS403": NotPermitted,
    "FS404": RequestRefused,
    "FS409": OperationConflict,
    "FS420": NotPossibleNow,
    "42501": NotPermitted,
}
_CONTENDED = {
    "40001": "could not be put in order with others",
    "40P01": "deadlock",
    "55P03": "a lock was not to be had",
}
_EXHAUSTED = {
    "53100": "has no room left on its disk: make some",
    "53200": "is out of memory: give it more, or let less work at once",
}
_AS_BEFORE = "nothing is lost or doubled"
_VOTE_REFUSALS = {"FS410": "resolved", "FS411": "expired", "FS412": "changed", "FS413": "voted"}


def sqlstate(error: DBAPIError) -> str | None:
    """The SQLSTATE of a database error, or None when the connection itself failed."""
    state: str | None = getattr(error.orig, "sqlstate", None)
    return state


def translated(error: DBAPIError) -> FailsafeError:
    """The error of our tree that a database error stands for; its text never holds a bound value."""
    state = sqlstate(error)
    diagnostic = getattr(error.orig, "diag", None)
    said = getattr(diagnostic, "message_primary", None) or _turned_away(str(error.orig)) or type(error.orig).__name__
    if state in _VOTE_REFUSALS:
        return VoteRefused(_VOTE_REFUSALS[state], said)
    if state in _BY_SQLSTATE:
        return _BY_SQLSTATE[state](said)
    if state == "23505" and getattr(diagnostic, "constraint_name", None) == "approval_votes_pkey":
        return VoteRefused("voted", "you already voted on this approval request; a vote cannot be changed or repeated")
    if isinstance(error, OperationalError) or state is None:
        return _unavailable(state, said)
    if state == "22023" and said.startswith("role "):
        return SchemaMismatch(f"{said} on this server; run `failsafe db init`")
    constraint = getattr(diagnostic, "constraint_name", None)
    return FailsafeError(f"the database refused the statement ({state}{f', {constraint}' if constraint else ''})")


def _turned_away(text: str) -> str:
    """Why the server takes no connection, in its own words; there is no SQLSTATE yet, and no password in them."""
    found = re.search(r"FATAL:\s+(.+)", text)
    return found[1] if found else ""


def _unavailable(state: str | None, said: str) -> StoreUnavailable:
    if state in _EXHAUSTED:
        return StoreUnavailable(f"the database {_EXHAUSTED[state]} ({state}); then run again, {_AS_BEFORE}")
    if state in _CONTENDED:
        return StoreContended(f"{StoreContended.__doc__} ({state}: {_CONTENDED[state]})")
    return StoreUnavailable(f"the database did not answer ({state or said}); run `failsafe doctor`")
