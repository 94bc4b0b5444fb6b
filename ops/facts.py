"""Facts from the store that risk rules look at: claims that others hold, values never seen before."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence

import sqlalchemy as sa

from ops.batch import Batch
from ops.judging import Case
from policies.claims import claim_values, novel_values
from policies.risk import Facts
from resources.store import stages


def gather(connection: sa.Connection, batch: Batch, cases: Sequence[Case], *, take: bool) -> Mapping[uuid.UUID, Facts]:
    """The facts about each case at this instant; with `take`, its claims are taken where they are free."""
    claims = {case.id: claim_values(case.sealed, batch.policy) for case in cases}
    if take:
        stages.take_claims(connection, batch.workflow.name, claims)
    taken = stages.claims_of_others(connection, batch.workflow.name, claims)
    values = {case.id: novel_values(case.sealed, batch.policy) for case in cases}
    seen = stages.known_values(connection, batch.workflow.name, values)
    now = stages.database_instant(connection)
    return {
        case.id: Facts(
            now=now,
            claims_taken=frozenset(taken.get(case.id, ())),
            novel=frozenset(
                path
                for path, hashes in values[case.id].items()
                if any(value not in seen.get((case.id, path), ()) for value in hashes)
            ),
            edited=case.edited,
            supplied=case.supplied_by_another,
        )
        for case in cases
    }


def learn(connection: sa.Connection, batch: Batch, cases: Sequence[Case]) -> None:
    """Remember the values of completed requests: they are no longer new."""
    stages.learn_values(connection, batch.workflow.name, [novel_values(case.sealed, batch.policy) for case in cases])
