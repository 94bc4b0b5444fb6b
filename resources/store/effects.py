"""Effects: start through the one door, record outcomes, find what is unknown."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from policies.effects import EffectState
from policies.saga import Standing
from resources.store.claim import Lease
from resources.store.moves import plain_text
from resources.store.queries import query


@dataclass(frozen=True, slots=True)
class Start:
    """One effect to start. `recovery` says how it would be undone and is written before anything is sent.

    `late_intent`: of a late effect that a person wants undone, which of the tries it was.
    """

    request_id: uuid.UUID
    ordinal: int
    parameters_hash: bytes
    recovery: dict[str, Any]
    kind: str = "forward"
    late_intent: int | None = None


@dataclass(frozen=True, slots=True)
class Started:
    """The database's answer: the idempotency key, or why it was refused."""

    request_id: uuid.UUID
    ordinal: int
    key: str
    refusal: str | None
    wait_seconds: float
    """Where the refusal passes by itself: how long that takes, 0 where nobody can say."""


def start_effects(connection: sa.Connection, token: uuid.UUID, provider: str, starts: Sequence[Start]) -> list[Started]:
    """Recount authority and bring to `in_flight` what may start (see `functions/effects.sql`)."""
    rows = connection.execute(
        query("start_effects"),
        {
            "token": token,
            "provider": provider,
            "ids": [start.request_id for start in starts],
            "ordinals": [start.ordinal for start in starts],
            "kinds": [start.kind for start in starts],
            "parameters_hashes": [start.parameters_hash for start in starts],
            "recoveries": [json.dumps(start.recovery) for start in starts],
            "intents": [start.late_intent for start in starts],
        },
    )
    return [Started(*row) for row in rows]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What is known of one effect after a call or a look-up."""

    request_id: uuid.UUID
    ordinal: int
    key: str
    state: EffectState
    reference: str | None = None
    result: dict[str, Any] | None = None
    error: str | None = None
    retry_after: float | None = None


def record_outcomes(connection: sa.Connection, token: uuid.UUID, outcomes: Sequence[Outcome]) -> set[str]:
    """Write outcomes with their outbox and audit events; returns the keys recorded (a lost lease records nothing)."""
    if not outcomes:
        return set()
    rows = connection.execute(
        query("record_outcomes"),
        {
            "token": token,
            "keys": [outcome.key for outcome in outcomes],
            "states": [outcome.state.value for outcome in outcomes],
            "references": [
                None if outcome.reference is None else plain_text(outcome.reference) for outcome in outcomes
            ],
            "results": [None if outcome.result is None else json.dumps(outcome.result) for outcome in outcomes],
            "errors": [None if outcome.error is None else plain_text(outcome.error) for outcome in outcomes],
        },
    )
    return set(rows.scalars().all())


def report_late(connection: sa.Connection, outcomes: Sequence[Outcome]) -> None:
    """Append what a provider told a worker that had lost its lease; what was never sent it told nothing about."""
    told = [one for one in outcomes if one.state is not EffectState.INTENDED or one.error is not None]
    if told:
        connection.execute(
            sa.text(
                "select report_late(cast(:keys as text[]), cast(:states as text[]), cast(:references as text[]),"
                " cast(:errors as text[]))"
            ),
            {
                "keys": [outcome.key for outcome in told],
                "states": [outcome.state.value for outcome in told],
                "references": [None if one.reference is None else plain_text(one.reference) for one in told],
                "errors": [None if one.error is None else plain_text(one.error) for one in told],
            },
        )


def cancellations(connection: sa.Connection, ids: Sequence[uuid.UUID]) -> set[uuid.UUID]:
    """Those of these requests whose cancellation was asked for."""
    if not ids:
        return set()
    statement = sa.text("select id from requests where id = any(:ids) and cancel_requested_at is not null")
    return {row.id for row in connection.execute(statement, {"ids": list(ids)})}


def effects_standing(connection: sa.Connection, ids: Sequence[uuid.UUID]) -> dict[uuid.UUID, Standing]:
    """What each of these requests has done to the world so far."""
    if not ids:
        return {}
    statement = sa.text("select id, effects_standing(id) as standing from unnest(cast(:ids as uuid[])) as r (id)")
    return {row.id: Standing(row.standing) for row in connection.execute(statement, {"ids": list(ids)})}


def executions(connection: sa.Connection, lease: Lease) -> Sequence[sa.Row[Any]]:
    """What the requests of a lease would execute, in id order (columns of `sql/executions.sql`)."""
    return connection.execute(query("executions"), {"ids": lease.ids, "token": lease.token}).all()


def unknown_effects(connection: sa.Connection, lease: Lease) -> Sequence[sa.Row[Any]]:
    """Unknown effects of a lease's requests with their ages in seconds (columns of `sql/unknown_effects.sql`)."""
    return connection.execute(query("unknown_effects"), {"ids": lease.ids, "token": lease.token}).all()


def mark_rechecked(
    connection: sa.Connection, token: uuid.UUID, ids: Sequence[uuid.UUID], *, age: float
) -> set[uuid.UUID]:
    """Note that policy and preconditions still agree, which is good for 30 s; returns the ids that are still ours.

    `age`: seconds since the first of what was judged by was read.
    """
    if not ids:
        return set()
    arguments = {"ids": list(ids), "token": token, "age": age}
    return {row.id for row in connection.execute(query("mark_rechecked"), arguments)}


def sweep_leases(connection: sa.Connection, workflow: str, batch: str, limit: int) -> int:
    """Take one page of work back from workers that died; their effects in flight become unknown. Returns how many."""
    count: int = connection.execute(
        sa.text("select sweep_leases(:workflow, :batch, :limit)"),
        {"workflow": workflow, "batch": batch, "limit": limit},
    ).scalar_one()
    return count
