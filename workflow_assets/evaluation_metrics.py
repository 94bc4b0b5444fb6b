"""The asset `[workflow, evaluation_metrics]`: what became of a batch's requests, by risk tier."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import dagster as dg
import sqlalchemy as sa

from ops.run_report import desk_link
from policies.asset_names import EVALUATION_METRICS, NO_DUPLICATE_EFFECTS, NO_EFFECT_WITHOUT_AUTHORITY
from policies.states import State
from policies.tiers import Tier
from resources.store.reports import BatchChange, batch_evaluation, duplicate_effects, unauthorized_effects

if TYPE_CHECKING:
    import pandas as pd

TIERS = (*(tier.value for tier in Tier), "none")
"""`none` holds what was never assessed: refused by validation, parked before it, or still on its way."""

COUNTS = ("requests", "automatic", "reviewed", "refused", "effects")
LATENCIES = ("latency_median_seconds", "latency_p95_seconds")


def evaluation_frame(rows: Sequence[sa.Row[Any]]) -> pd.DataFrame:
    """One row a tier, in ascending order; a tier without requests is left out.

    `automatic` and `reviewed` count decisions, `refused` what policy or validation turned down; a person's denial
    counts as reviewed. Latencies are seconds from receipt to a terminal state, waiting for people included; missing
    where nothing has ended.
    """
    import pandas as pd  # takes two seconds, so only the run that makes this asset pays for it

    columns = ["tier", "decision", "state", "latency_seconds", "effects"]
    requests = pd.DataFrame([tuple(row) for row in rows], columns=columns)
    requests["tier"] = pd.Categorical(requests["tier"], categories=TIERS, ordered=True)
    requests["latency_seconds"] = requests["latency_seconds"].astype(float)
    requests["automatic"] = requests["decision"] == "auto"
    requests["reviewed"] = requests["decision"] == "review"
    unassessed = requests["decision"].isna() & (requests["state"] == State.REJECTED.value)
    requests["refused"] = (requests["decision"] == "refuse") | unassessed
    by_tier = requests.groupby("tier", observed=True)
    frame = by_tier[["automatic", "reviewed", "refused", "effects"]].sum().astype(int)
    frame.insert(0, "requests", by_tier.size().astype(int))
    frame["latency_median_seconds"] = by_tier["latency_seconds"].median()
    frame["latency_p95_seconds"] = by_tier["latency_seconds"].quantile(0.95)
    return frame


def evaluation_metrics(
    connection: sa.Connection, workflow: str, batch: str, change: BatchChange
) -> dg.MaterializeResult[None]:
    """Evaluate the batch; its numbers are plotted over batches in the Dagster UI."""
    frame = evaluation_frame(batch_evaluation(connection, workflow, batch))
    records = _records(frame)
    metadata: dict[str, Any] = {
        **{name: int(frame[name].sum()) for name in COUNTS},
        "open": change.open,
        "parked": change.parked,
        "by_tier": dg.MetadataValue.table([dg.TableRecord(record) for record in records], schema=_SCHEMA),
        **desk_link(workflow),
    }
    for record in records:
        for name in LATENCIES:
            if record[name] is not None:
                metadata[f"{record['tier']}_{name}"] = record[name]
    key = dg.AssetKey([workflow, EVALUATION_METRICS])
    return dg.MaterializeResult(
        asset_key=key,
        metadata=metadata,
        check_results=[
            _none_found(key, NO_DUPLICATE_EFFECTS, duplicate_effects(connection, workflow, batch)),
            _none_found(key, NO_EFFECT_WITHOUT_AUTHORITY, unauthorized_effects(connection, workflow, batch)),
        ],
    )


_SCHEMA = dg.TableSchema(
    [
        dg.TableColumn("tier"),
        *(dg.TableColumn(name, "int") for name in COUNTS),
        *(dg.TableColumn(name, "float") for name in LATENCIES),
    ]
)


def _records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """The frame as table cells, with None for what is missing: JSON has no NaN."""
    plain = frame.astype(object).where(frame.notna(), None)
    return [{str(name): value for name, value in row.items()} for row in plain.reset_index().to_dict("records")]


def _none_found(key: dg.AssetKey, check: str, keys: Sequence[str]) -> dg.AssetCheckResult:
    return dg.AssetCheckResult(
        asset_key=key,
        check_name=check,
        passed=not keys,
        description=f"At least {len(keys)} effects; look at each with `failsafe show`." if keys else None,
        metadata={"idempotency_keys": dg.MetadataValue.json(list(keys))},
    )
