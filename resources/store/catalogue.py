"""Which action types a workflow has and who carries them out, so that a pause can say that it names nothing."""

from __future__ import annotations

from collections.abc import Mapping

import sqlalchemy as sa

from policies.outcomes import Semantics
from resources.store.queries import query


def register_providers(connection: sa.Connection, semantics: Mapping[str, Semantics]) -> None:
    """Note each provider with the limits that its adapters declare; all processes share its row."""
    for name, declared in sorted(semantics.items()):
        connection.execute(
            sa.text("select register_provider(:name, :max_in_flight, cast(:per_second as real))"),
            {"name": name, "max_in_flight": declared.max_in_flight, "per_second": declared.per_second},
        )


def register_action_types(connection: sa.Connection, workflow: str, providers: Mapping[str, str]) -> None:
    """Note the workflow's action types with their providers; what it no longer has is forgotten."""
    connection.execute(
        query("register_action_types"),
        {"workflow": workflow, "types": list(providers), "providers": list(providers.values())},
    )
