"""The asset `[workflow, audit_ledger]`: how many events of each type a batch has, and whether every chain is whole."""

from __future__ import annotations

from collections import Counter
from typing import Any

import dagster as dg
import sqlalchemy as sa

from ops.run_report import desk_link
from policies.asset_names import AUDIT_LEDGER, CHAIN_INTACT
from policies.audit import verify_chain
from resources.store.chains import batch_chains

MAX_ROWS = 50
"""Damaged streams shown; `failsafe audit verify` names all."""


def audit_ledger(connection: sa.Connection, workflow: str, batch: str) -> dg.MaterializeResult[None]:
    """Read and verify the chain of every request of the batch. A request without any event has lost its stream."""
    events: Counter[str] = Counter()
    damaged: list[dg.TableRecord] = []
    streams = 0
    for chain in batch_chains(connection, workflow, batch):
        streams += 1
        events.update(event.type for event in chain.events)
        found = verify_chain(chain.stream, chain.events, chain.head)
        if not found.intact or not chain.events:
            damage = str(found.damage or "missing_stream")
            damaged.append(dg.TableRecord({"stream": chain.stream, "seq": found.bad_seq or 0, "damage": damage}))
    metadata: dict[str, Any] = {
        "events": events.total(),
        "streams": streams,
        "damaged_streams": len(damaged),
        "events_by_type": dg.MetadataValue.table(
            [dg.TableRecord({"type": name, "events": count}) for name, count in sorted(events.items())],
            schema=dg.TableSchema([dg.TableColumn("type"), dg.TableColumn("events", "int")]),
        ),
        **desk_link(workflow),
    }
    key = dg.AssetKey([workflow, AUDIT_LEDGER])
    return dg.MaterializeResult(
        asset_key=key,
        metadata=metadata,
        check_results=[
            dg.AssetCheckResult(
                asset_key=key,
                check_name=CHAIN_INTACT,
                passed=not damaged,
                description=f"{len(damaged)} of {streams} streams are damaged." if damaged else None,
                metadata={
                    "streams": streams,
                    "damaged": dg.MetadataValue.table(
                        damaged[:MAX_ROWS],
                        schema=dg.TableSchema(
                            [dg.TableColumn("stream"), dg.TableColumn("seq", "int"), dg.TableColumn("damage")]
                        ),
                    ),
                },
            )
        ],
    )
