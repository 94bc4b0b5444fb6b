"""What a run shows in the Dagster UI: counts by state, what is parked and why, and the colour of the batch."""

from __future__ import annotations

import os
from typing import Any
from urllib.parse import quote

import dagster as dg

from ops.close_batch import BatchReport
from policies.asset_names import NO_OPEN_CASES, REQUEST_BATCH
from policies.redaction import clipped

MAX_CELL = 200
"""Characters of one table cell: the event log is no place for documents, and the web server has to render them."""


def report(context: dg.OpExecutionContext, result: BatchReport) -> None:
    """Write tags and metadata of a finished run.

    Raises:
        dagster.Failure: the batch holds an open dead letter; it stays red until an operator clears it.
    """
    by_state = result.standing.by_state
    context.instance.add_run_tags(
        context.run_id, {f"failsafe/{state}": str(count) for state, count in sorted(by_state.items())}
    )
    metadata: dict[str, Any] = {f"requests_{state}": count for state, count in sorted(by_state.items())}
    metadata["due_now"] = result.standing.due
    metadata["open_dead_letters"] = result.standing.open_cases
    desk = os.environ.get("FAILSAFE_DESK_URL")  # where people reach the desk; only the deployment knows
    if desk:
        workflow = quote(context.resources.workflow.workflow.name)
        metadata["review_desk"] = dg.MetadataValue.url(f"{desk.rstrip('/')}/inbox?workflow={workflow}")
    _tell_asset(context, metadata, result.standing.open_cases)
    if result.parked:
        metadata["parked"] = dg.MetadataValue.table(
            [
                dg.TableRecord({name: clipped(str(value), MAX_CELL) for name, value in row.items()})
                for row in result.parked
            ]
        )
    context.add_output_metadata(metadata)
    if result.standing.open_cases:
        raise dg.Failure(
            description=f"{result.standing.open_cases} open dead letters in batch {context.partition_key}; see "
            f"`failsafe dead-letters list --batch {context.partition_key}`. The batch stays red until each is "
            "redriven, resolved or discarded.",
            metadata=metadata,
            allow_retries=False,
        )


def _tell_asset(context: dg.OpExecutionContext, counts: dict[str, Any], open_cases: int) -> None:
    """Show on the asset of the requests how the batch stands; alerts belong on its check."""
    requests = dg.AssetKey([context.resources.workflow.workflow.name, REQUEST_BATCH])
    context.log_event(dg.AssetObservation(requests, partition=context.partition_key, metadata=dict(counts)))
    context.log_event(
        dg.AssetCheckEvaluation(  # type: ignore[arg-type]  # accepted, though the annotation does not say so
            asset_key=requests,
            check_name=NO_OPEN_CASES,
            passed=open_cases == 0,
            partition=context.partition_key,
            metadata={"open_dead_letters": open_cases},
        )
    )
