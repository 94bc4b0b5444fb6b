"""What extraction, validation and assessment read and write, each in the caller's transaction."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from resources.store.queries import query


@dataclass(frozen=True, slots=True)
class OutputRow:
    """One model output of one request; `canonical` and `hash` only where it sealed."""

    request_id: uuid.UUID
    revision: int
    kind: str
    output: bytes
    canonical: bytes | None
    hash: bytes | None
    model: str
    prompt_version: str


def standing_outputs(
    connection: sa.Connection, wanted: Sequence[tuple[uuid.UUID, int]]
) -> dict[uuid.UUID, tuple[str, bytes | None]]:
    """Kind and hash of each output that exists already."""
    rows = connection.execute(
        query("standing_proposals"), {"ids": [one[0] for one in wanted], "revisions": [one[1] for one in wanted]}
    )
    return {row.request_id: (row.kind, row.hash) for row in rows}


def insert_outputs(connection: sa.Connection, outputs: Sequence[OutputRow]) -> None:
    """Keep model outputs; a (request, revision) is written once."""
    if outputs:
        connection.execute(
            query("insert_proposals"),
            {
                "ids": [row.request_id for row in outputs],
                "revisions": [row.revision for row in outputs],
                "kinds": [row.kind for row in outputs],
                "outputs": [row.output for row in outputs],
                "canonicals": [row.canonical for row in outputs],
                "hashes": [row.hash for row in outputs],
                "models": [row.model for row in outputs],
                "prompt_versions": [row.prompt_version for row in outputs],
            },
        )


@dataclass(frozen=True, slots=True)
class FindingsRow:
    """The result of validating one proposal in one round. `items` are findings as JSON documents."""

    request_id: uuid.UUID
    revision: int
    round: int
    verdict: str
    items: list[dict[str, Any]]
    weakest_trust: str
    parties: list[str]


def insert_findings(connection: sa.Connection, rows: Sequence[FindingsRow], *, standing: bool = True) -> set[uuid.UUID]:
    """Write findings and return the ids written.

    With `standing`, only for requests that are `proposal_ready` in that revision and round; without, as they are (for
    outputs that never became a proposal).
    """
    if not rows:
        return set()
    written = connection.execute(
        query("insert_findings" if standing else "insert_output_findings"),
        {
            "ids": [row.request_id for row in rows],
            "revisions": [row.revision for row in rows],
            "rounds": [row.round for row in rows],
            "verdicts": [row.verdict for row in rows],
            "items": [json.dumps(row.items) for row in rows],
            "trusts": [row.weakest_trust for row in rows],
            "parties": [json.dumps(row.parties) for row in rows],
        },
    )
    return set(written.scalars().all())


@dataclass(frozen=True, slots=True)
class Page:
    """Which work a step reads next: of this batch, due when the pass was opened, after this id, so many at most."""

    workflow: str
    batch: str
    opened_at: datetime
    after: uuid.UUID
    limit: int


def due_validation(connection: sa.Connection, page: Page) -> Sequence[sa.Row[Any]]:
    """Proposals without findings in this round, in id order (columns of `sql/due_validation.sql`)."""
    return connection.execute(query("due_validation"), asdict(page)).all()


def hold_proposals(
    connection: sa.Connection, opened_at: datetime, read: Sequence[tuple[uuid.UUID, int, int]]
) -> dict[uuid.UUID, int]:
    """Lock those (request, revision, round) that are still to be validated, as `due_validation` read them.

    Returns the attempts that each of them has used; what another worker or a person changed meanwhile is missing.
    """
    rows = connection.execute(
        query("hold_proposals"),
        {
            "ids": [one[0] for one in read],
            "revisions": [one[1] for one in read],
            "rounds": [one[2] for one in read],
            "opened_at": opened_at,
        },
    )
    return {row.id: row.attempts for row in rows}


def reasons_told(connection: sa.Connection, ids: Sequence[uuid.UUID]) -> dict[uuid.UUID, str | None]:
    """Why each of the requests stands where it stands, as it was last written."""
    rows = connection.execute(sa.text("select id, reason from requests where id = any(:ids)"), {"ids": list(ids)})
    return {row.id: row.reason for row in rows}


def due_assessment(connection: sa.Connection, page: Page) -> Sequence[sa.Row[Any]]:
    """Validated proposals without an assessment in this round, in id order and locked (`sql/due_assessment.sql`)."""
    return connection.execute(query("due_assessment"), asdict(page)).all()


def due_approval_requests(connection: sa.Connection, page: Page) -> Sequence[sa.Row[Any]]:
    """Requests that wait for people whom nobody asked yet, in id order and locked (`sql/due_approval_requests.sql`)."""
    return connection.execute(query("due_approval_requests"), asdict(page)).all()


Claims = Mapping[uuid.UUID, Mapping[str, bytes]]
"""For each request the value hash of each kind of claim."""


def take_claims(connection: sa.Connection, workflow: str, claims: Claims) -> None:
    """Take the claims that nobody holds."""
    arguments = _claim_arguments(workflow, claims)
    if arguments["ids"]:
        connection.execute(query("take_claims"), arguments)


def claims_of_others(connection: sa.Connection, workflow: str, claims: Claims) -> dict[uuid.UUID, set[str]]:
    """The kinds of each request's claims that another request holds."""
    arguments = _claim_arguments(workflow, claims)
    taken: dict[uuid.UUID, set[str]] = {}
    if arguments["ids"]:
        for row in connection.execute(query("claims_of_others"), arguments):
            taken.setdefault(row.id, set()).add(row.kind)
    return taken


def _claim_arguments(workflow: str, claims: Claims) -> dict[str, Any]:
    wanted = [(request_id, kind, value) for request_id, kinds in claims.items() for kind, value in kinds.items()]
    return {
        "workflow": workflow,
        "ids": [one[0] for one in wanted],
        "kinds": [one[1] for one in wanted],
        "hashes": [one[2] for one in wanted],
    }


def known_values(
    connection: sa.Connection, workflow: str, values: Mapping[uuid.UUID, Mapping[str, Sequence[bytes]]]
) -> dict[tuple[uuid.UUID, str], set[bytes]]:
    """Which values (by request and parameter path) a completed request of the workflow has used before."""
    wanted = [
        (request_id, path, value)
        for request_id, paths in values.items()
        for path, hashes in paths.items()
        for value in hashes
    ]
    if not wanted:
        return {}
    arguments = {
        "workflow": workflow,
        "ids": [one[0] for one in wanted],
        "paths": [one[1] for one in wanted],
        "hashes": [one[2] for one in wanted],
    }
    known: dict[tuple[uuid.UUID, str], set[bytes]] = {}
    for row in connection.execute(query("known_values"), arguments):
        known.setdefault((row.id, row.path), set()).add(bytes(row.value_hash))
    return known


def learn_values(connection: sa.Connection, workflow: str, values: Sequence[Mapping[str, Sequence[bytes]]]) -> None:
    """Remember values that completed requests have used."""
    used = [(path, value) for paths in values for path, hashes in paths.items() for value in hashes]
    if used:
        connection.execute(
            query("learn_values"),
            {"workflow": workflow, "paths": [one[0] for one in used], "hashes": [one[1] for one in used]},
        )


def database_instant(connection: sa.Connection) -> datetime:
    """The database's clock now, not when the transaction began."""
    instant: datetime = connection.execute(sa.text("select clock_timestamp()")).scalar_one()
    return instant


def release_claims(connection: sa.Connection, ids: Sequence[uuid.UUID]) -> None:
    """Free the claims of requests that ended without an effect."""
    if ids:
        connection.execute(query("release_claims"), {"ids": list(ids)})


@dataclass(frozen=True, slots=True)
class AssessmentRow:
    """The tier and decision of one proposal in one round."""

    request_id: uuid.UUID
    revision: int
    round: int
    tier: str
    decision: str
    mode: str
    reasons: list[dict[str, Any]]
    demand: dict[str, Any] | None
    snapshots: Mapping[str, str]
    """By action id; empty where no action rests on outside state."""


def insert_assessments(
    connection: sa.Connection, rows: Sequence[AssessmentRow], *, policy_version: str, policy_hash: bytes
) -> None:
    """Write assessments made under one policy."""
    if rows:
        connection.execute(
            query("insert_assessments"),
            {
                "ids": [row.request_id for row in rows],
                "revisions": [row.revision for row in rows],
                "rounds": [row.round for row in rows],
                "tiers": [row.tier for row in rows],
                "decisions": [row.decision for row in rows],
                "modes": [row.mode for row in rows],
                "reasons": [json.dumps(row.reasons) for row in rows],
                "demands": [None if row.demand is None else json.dumps(row.demand) for row in rows],
                "snapshots": [json.dumps(row.snapshots) if row.snapshots else None for row in rows],
                "policy_version": policy_version,
                "policy_hash": policy_hash,
            },
        )
