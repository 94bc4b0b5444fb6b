"""The floor: the rows that one request leaves behind, written as plainly as the database takes them.

It decides nothing, leases nothing and reads nothing back. Its tables are copies of ours, so what they enforce (checks,
foreign keys between them, triggers) is enforced on both sides.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

import psycopg
from psycopg import sql

CHUNK = 500
"""Requests in one round of commits, as in a chunk of ours."""

EVENTS = (
    (("request.received", 230), ("proposal.recorded", 190)),
    (("assessment.recorded", 220),),
    (("approval.stale", 80),),
    (("assessment.recorded", 220),),
    (("effect.started", 330),),
    (("effect.done", 180), ("request.concluded", 60)),
)
"""The eight ledger events of a request by the commit that writes them, with the size of their payload in bytes."""

STEPS = (
    ("proposal_recorded", "proposal_ready"),
    ("approval_required", "awaiting_approval"),
    ("approval_stale", "proposal_ready"),
    ("approval_required", "awaiting_approval"),
    ("approved", "executing"),
    ("effects_done", "completed"),
)
"""The transition of each commit, by event and new state: the longer way, with a second round of approval."""

COLUMNS = {
    "requests": "id workflow workflow_version operation_id initiator authorization_context payload payload_fingerprint"
    " batch_key next_eligible_at trace_id received_at",
    "proposals": "request_id revision kind output canonical hash model prompt_version",
    "effects": "idempotency_key request_id revision action_id action_type ordinal intent round kind provider"
    " proposal_hash parameters_hash recovery state first_sent_at started_at outcome_at provider_reference result",
    "outbox": "aggregatetype aggregateid type payload aggregate_seq",
    "audit_events": "stream seq type at role actor payload hash",
}

WHAT_THEY_ENFORCE = """
    select format('alter table floor.%%I add %%s', c.relname,
        replace(pg_get_constraintdef(k.oid), 'failsafe.', 'floor.'))
    from pg_constraint k join pg_class c on c.oid = k.conrelid join pg_class target on target.oid = k.confrelid
    where c.relnamespace = 'failsafe'::regnamespace
      and c.relname = any (%(tables)s) and target.relname = any (%(tables)s)
    union all
    select replace(pg_get_triggerdef(t.oid), ' ON failsafe.', ' ON floor.')
    from pg_trigger t join pg_class c on c.oid = t.tgrelid
    where not t.tgisinternal and c.relnamespace = 'failsafe'::regnamespace and c.relname = any (%(tables)s)
"""
"""Statements that give the copies the foreign keys and triggers of ours; the rest comes with LIKE."""


@dataclass(slots=True)
class Written:
    """One request of the floor: its id and where its chain of events stands."""

    id: uuid.UUID
    number: int
    seq: int = 0
    hash: bytes = field(default=bytes(32))

    @property
    def key(self) -> str:
        """The idempotency key of its effect."""
        return f"floor:{self.id}:1:order.pay:1"


@contextmanager
def floor_tables(connection: psycopg.Connection[Any]) -> Iterator[None]:
    """The floor's tables, empty; gone afterwards, so that nobody vacuums them while something else is measured."""
    connection.execute("create schema floor")
    for table in COLUMNS:
        connection.execute(
            sql.SQL("create table floor.{0} (like failsafe.{0} including all)").format(sql.Identifier(table))
        )
        found = connection.execute("select reloptions from pg_class where oid = %s::regclass", [f"failsafe.{table}"])
        for (options,) in found.fetchall():
            if options:
                settings = sql.SQL(", ").join(map(sql.SQL, options))
                connection.execute(sql.SQL("alter table {} set ({})").format(sql.Identifier("floor", table), settings))
    for (statement,) in connection.execute(WHAT_THEY_ENFORCE, {"tables": list(COLUMNS)}).fetchall():
        connection.execute(statement)
    connection.commit()
    yield
    connection.execute("drop schema floor cascade")
    connection.commit()


def write_floor(
    connection: psycopg.Connection[Any], requests: int, *, batch: str, send: Callable[[int, str], object] | None = None
) -> float:
    """Write `requests` requests with all that belongs to them into the floor's tables; returns the seconds it took.

    `send` is called for each request with its number and idempotency key, after the effect's row is committed.
    """
    initiator = uuid.uuid4()
    began = time.monotonic()
    for first in range(0, requests, CHUNK):
        at = datetime.now(UTC)
        chunk = [Written(_id(at), number) for number in range(first, min(first + CHUNK, requests))]
        for commit, events in enumerate(EVENTS):
            if commit == 0:
                _copy(connection, "requests", [_request(one, initiator, batch, at) for one in chunk])
                _copy(connection, "proposals", [_proposal(one) for one in chunk])
            elif commit == 4:
                _copy(connection, "effects", [_effect(one, at) for one in chunk])
            elif commit == 5:
                _copy(connection, "outbox", [_outbox(one) for one in chunk])
            _copy(connection, "audit_events", [_event(one, *event, at) for one in chunk for event in events])
            connection.execute(
                "update floor.requests set last_event = %s, state = %s, state_seq = state_seq + 1, closed_at = %s"
                " where id = any (%s)",
                (*STEPS[commit], at if commit == 5 else None, [one.id for one in chunk]),
            )
            connection.commit()
            if commit == 4 and send is not None:
                for one in chunk:
                    send(one.number, one.key)
    return time.monotonic() - began


def _copy(connection: psycopg.Connection[Any], table: str, rows: Sequence[tuple[Any, ...]]) -> None:
    columns = sql.SQL(", ").join(map(sql.Identifier, COLUMNS[table].split()))
    statement = sql.SQL("copy {} ({}) from stdin").format(sql.Identifier("floor", table), columns)
    with connection.cursor().copy(statement) as copy:
        for row in rows:
            copy.write_row(row)


def _id(at: datetime) -> uuid.UUID:
    """An id that begins with the time, as ours do: such rows go to the end of an index."""
    return uuid.UUID(int=int(at.timestamp() * 1000) << 80 | uuid.uuid4().int & (1 << 80) - 1)


def _request(one: Written, initiator: uuid.UUID, batch: str, at: datetime) -> tuple[Any, ...]:
    payload = f'{{"order":"o{one.number}","amount":"12.50 EUR"}}'.encode()
    context = '{"roles" : ["clerk"], "name" : "floor"}'
    hashed = sha256(payload).digest()
    return (
        one.id, "floor", "1", f"{one.id}", initiator, context, payload, hashed, batch, at, one.id.hex, at,
    )  # fmt: skip


def _proposal(one: Written) -> tuple[Any, ...]:
    canonical = f'{{"request_id":"{one.id}","revision":1,{" " * 800}}}'.encode()
    return (one.id, 1, "proposal", b" " * 200, canonical, sha256(canonical).digest(), "rules", "1")


def _effect(one: Written, at: datetime) -> tuple[Any, ...]:
    return (
        one.key, one.id, 1, "1:order.pay", "order.pay", 1, 1, 1, "forward", "Instant", one.hash, one.hash,
        '{"undo": null}', "done", at, at, at, "reference", "{}",
    )  # fmt: skip


def _outbox(one: Written) -> tuple[Any, ...]:
    payload = f'{{"key":"{one.key}","action":"order.pay","reference":"reference"}}'
    return ("request", str(one.id), "effect.done", payload, one.seq)


def _event(one: Written, event_type: str, size: int, at: datetime) -> tuple[Any, ...]:
    one.seq += 1
    stream, when, payload = f"request:{one.id}", f"{at:%Y-%m-%dT%H:%M:%S.%f}Z", b" " * size
    header = f"failsafe/audit/v1\n{stream}\n{one.seq}\n{event_type}\n{when}\nfloor\nfloor\n".encode()
    one.hash = sha256(one.hash + header + payload).digest()
    return (stream, one.seq, event_type, when, "floor", "floor", payload, one.hash)
