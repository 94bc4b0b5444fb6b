"""An adapter whose provider is a PostgreSQL database: effect and key are written by one statement, in one transaction.

The statement of an action type becomes part of a larger one that also inserts the key. If the key is already there, the
unique constraint fails the whole statement and the effect with it; what was stored for the key is then returned. A
first use costs one round trip and one commit.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any, cast

from pydantic import PrivateAttr

from policies.actions import Action
from policies.errors import DefinitionError, NotExecuted, OutcomeUnknown
from policies.hashing import PARAMETERS, domain_hash
from policies.outcomes import Done, Refused, Semantics
from resources.adapters.base import Adapter, settled
from resources.adapters.sql_statement import parameter_names, parameter_values, translated
from resources.secrets import Secret

if TYPE_CHECKING:
    import psycopg

FOREVER = timedelta(days=36_500)

CONNECT_SECONDS = 3
"""Longest time to connect. It is part of a call's timeout; the rest is shared by the call's statements."""

STATEMENTS_PER_CALL = 3
"""At most: the effect; after a violated constraint the refusal; what is stored under the key."""

KEY_TABLE = """\
create table if not exists failsafe_effects (
    key text primary key,
    parameters_hash bytea not null,
    refused_code text,
    reference text not null,
    result jsonb not null,
    created_at timestamptz not null default clock_timestamp()
)"""
"""The table of keys in the target database; `refused_code` is null where the effect was done. Never delete its rows."""

_EXECUTE = """\
with effect as ({statement}),
     kept as (select (select to_jsonb(effect) from effect limit 1) as result)
insert into failsafe_effects (key, parameters_hash, refused_code, reference, result)
select %(failsafe_key)s, %(failsafe_hash)s, case when result is null then 'no_row' end,
       coalesce(result ->> 'reference', %(failsafe_key)s), coalesce(result, '{{}}')
  from kept
returning refused_code, reference, result, parameters_hash"""

_REFUSE = """\
insert into failsafe_effects (key, parameters_hash, refused_code, reference, result)
values (%(failsafe_key)s, %(failsafe_hash)s, %(failsafe_code)s, '', '{}')
on conflict (key) do nothing"""

_STORED = "select refused_code, reference, result, parameters_hash from failsafe_effects where key = %(failsafe_key)s"


class SqlAdapter(Adapter):
    """Executes one SQL statement per action type in a PostgreSQL database, exactly once per key.

    Write each statement as an `insert`, `update` or `delete` with `returning`, or as `select some_function(...)`. It
    may use the action's parameters by name (`:payee`; of money `:amount_minor` and `:amount_currency`; lists and other
    objects as JSON text). The first row it returns is kept as the result, and its column `reference` as the provider's
    reference (without one: the key). A statement that returns no row has changed nothing: a refusal, `no_row`. A
    violated constraint and an exception raised by a function are refusals as well. The table of keys, `KEY_TABLE`, must
    exist in the database; `create_key_table` makes it.

    Fields:
        url: address of the database, `postgresql://user:password@host/database`, as `dg.EnvVar`.
        statements: the statement of each action type.
        timeout_seconds: longest time of one whole call, connecting included; more than 3.
        concurrency: calls at once from one worker, each on a connection of its own.
    """

    url: Secret
    statements: dict[str, str]
    timeout_seconds: float = 10
    concurrency: int = 4
    _idle: list[Any] = PrivateAttr(default_factory=list)
    _executing: dict[str, str] = PrivateAttr(default_factory=dict)

    def __init__(self, **data: Any) -> None:
        super().__init__(**data)
        if self.timeout_seconds <= CONNECT_SECONDS:
            raise DefinitionError(f"adapter {type(self).__name__}, field timeout_seconds: more than {CONNECT_SECONDS}")

    @property
    def semantics(self) -> Semantics:  # type: ignore[override]  # timeout and concurrency are configuration
        """Key and effect are one transaction; keys are kept for good."""
        return Semantics(
            honours_key=FOREVER,
            lookup=True,
            shares_transaction=True,
            timeout=timedelta(seconds=self.timeout_seconds),
            concurrency=self.concurrency,
        )

    def open(self) -> None:
        """Translates the statements; no connection is opened before the first call."""
        if _address(self.url) is None:
            raise DefinitionError(f"adapter {type(self).__name__}, field url: it holds no PostgreSQL address")
        self._executing = {
            name: _EXECUTE.format(statement=translated(text)[0]) for name, text in self.statements.items()
        }

    def close(self) -> None:
        """Closes the connections."""
        while self._idle:
            self._idle.pop().close()

    def target(self) -> str:
        """Host, database, user and what is executed there; the name of the variable where it is not set."""
        url = settled(self.url)
        address = _address(url) if isinstance(url, str) else None
        account = {name: address.get(name) for name in ("host", "port", "dbname", "user")} if address else str(url)
        return json.dumps([account, self.statements], sort_keys=True)

    def check_executes(self, model: type[Action], known: Iterable[type[Action]] = ()) -> None:  # noqa: ARG002  # no names
        """Accepts an action type that has a statement which uses parameters of this action only.

        Raises:
            DefinitionError: the statement is missing or names a parameter that the action lacks.
        """
        where, name = f"adapter {type(self).__name__}, field statements", model.action_type.name
        if name not in self.statements:
            raise DefinitionError(f'{where}: add the statement of "{name}"')
        unknown = translated(self.statements[name])[1] - set(parameter_names(model))
        if unknown:
            offered = ", ".join(parameter_names(model))
            raise DefinitionError(f'{where}, "{name}": no parameter {", ".join(sorted(unknown))}; there are {offered}')

    def create_key_table(self) -> None:
        """Makes the table of keys in the target database of an opened adapter, if it is not there."""
        self._row(KEY_TABLE, {})

    def execute(self, action: Action, key: str) -> Done | Refused:
        """Runs the action's statement, or returns what is stored under `key`."""
        import psycopg

        values = parameter_values(action)
        described = json.dumps([action.action_type.name, values], sort_keys=True)
        parameters_hash = domain_hash(PARAMETERS, described.encode())
        own = {"failsafe_key": key, "failsafe_hash": parameters_hash}
        try:
            row = self._row(self._executing[action.action_type.name], values | own)
        except (psycopg.IntegrityError, psycopg.DataError, psycopg.errors.RaiseException, UnicodeError) as error:
            # A repeat may fail on any constraint before it reaches the key, so what is stored there decides.
            self._row(_REFUSE, own | {"failsafe_code": _code(error)})
            row = self._row(_STORED, own)
        if row is None:
            raise OutcomeUnknown("the key was stored and is gone; keep the rows of failsafe_effects")
        if bytes(row[3]) != parameters_hash:
            return Refused("key_reused_with_other_body", "this key was used with other parameters")
        return _outcome(row)

    def look_up(self, key: str) -> Done | Refused | None:
        """What is stored under `key`."""
        row = self._row(_STORED, {"failsafe_key": key})
        return None if row is None else _outcome(row)

    def _row(self, statement: str, values: Mapping[str, Any]) -> tuple[Any, ...] | None:
        """The first row of `statement`, run in a transaction of its own.

        Raises:
            NotExecuted: the database said that it did not run, so all of it was rolled back.
            OutcomeUnknown: the connection ended before it answered.
            psycopg.IntegrityError, psycopg.DataError, psycopg.errors.RaiseException: refused for its content.
        """
        import psycopg

        connection = self._idle_connection() or self._connect()
        try:
            cursor = connection.execute(cast("Any", statement), values)
            return cursor.fetchone() if cursor.description else None
        except (psycopg.IntegrityError, psycopg.DataError, psycopg.errors.RaiseException):
            raise
        except psycopg.Error as error:
            # The driver's text may repeat parameters, so only class and SQLSTATE are told.
            if connection.closed:
                raise OutcomeUnknown(f"the database ended the connection ({_code(error)})") from None
            raise NotExecuted(f"the database did not run it ({_code(error)})") from None
        finally:
            if connection.pgconn.transaction_status == psycopg.pq.TransactionStatus.IDLE:
                self._idle.append(connection)
            else:
                connection.close()

    def _idle_connection(self) -> psycopg.Connection[tuple[Any, ...]] | None:
        with contextlib.suppress(IndexError):  # another thread may take the last one first
            return cast("psycopg.Connection[tuple[Any, ...]]", self._idle.pop())
        return None

    def _connect(self) -> psycopg.Connection[tuple[Any, ...]]:
        import psycopg

        statement_ms = int((self.timeout_seconds - CONNECT_SECONDS) * 1000 / STATEMENTS_PER_CALL)
        try:
            connection = psycopg.connect(
                **(_address(self.url) or {}),
                autocommit=True,
                connect_timeout=CONNECT_SECONDS,
                # A peer that vanished without a word ends the call as well.
                keepalives_idle=1,
                keepalives_interval=1,
                keepalives_count=3,
                tcp_user_timeout=statement_ms,
            )
            connection.execute("select set_config('statement_timeout', %s, false)", [str(statement_ms)])
        except psycopg.Error as error:
            raise NotExecuted(f"no connection to the database ({_code(error)})") from None
        return connection


def _outcome(row: tuple[Any, ...]) -> Done | Refused:
    refused_code, reference, result, _ = row
    if refused_code is None:
        return Done(reference, result)
    return Refused(refused_code, "the statement changed no row" if refused_code == "no_row" else "")


def _code(error: Exception) -> str:
    """The violated constraint, or else SQLSTATE, or else the class: never the text, which may hold parameters."""
    diagnosis = getattr(error, "diag", None)
    constraint = getattr(diagnosis, "constraint_name", None)
    return constraint or getattr(error, "sqlstate", None) or type(error).__name__


def _address(url: str) -> dict[str, Any] | None:
    """Connection parameters that a PostgreSQL address holds; None for anything else."""
    import psycopg
    from psycopg.conninfo import conninfo_to_dict

    try:
        return dict(conninfo_to_dict(re.sub(r"^postgresql\+\w+://", "postgresql://", str.__str__(url))))
    except psycopg.Error:
        return None
