"""What a run shows in the Dagster UI: counts by state, what is parked and why, and the colour of the batch."""

from __future__ import annotations

import os
from typing import Any
from urllib.parse import quote

import dagster as dg

from ops.close_batch import BatchReport
from ops.stuck_report import stuck_found, unknowns_found
from policies.asset_names import APPROVALS_ANSWERED, NO_OPEN_CASES, REQUEST_BATCH
from policies.redaction import clipped
from resources.store.reports import Waiting

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
    metadata |= desk_link(context.resources.workflow.workflow.name)
    _tell_asset(context, metadata, result)
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


def desk_link(workflow: str) -> dict[str, dg.MetadataValue[str]]:
    """Metadata that leads to what waits of a workflow, where FAILSAFE_DESK_URL says where people reach the desk."""
    desk = os.environ.get("FAILSAFE_DESK_URL")
    if not desk:
        return {}
    return {"review_desk": dg.MetadataValue.url(f"{desk.rstrip('/')}/inbox?workflow={quote(workflow)}")}


def _tell_asset(context: dg.OpExecutionContext, counts: dict[str, Any], result: BatchReport) -> None:
    """Show on the asset of the requests how the batch stands; alerts belong on its checks."""
    requests = dg.AssetKey([context.resources.workflow.workflow.name, REQUEST_BATCH])
    context.log_event(dg.AssetObservation(requests, partition=context.partition_key, metadata=dict(counts)))
    for found in (
        cases_found(result.standing.open_cases),
        waiting_found(result.waiting),
        stuck_found(result.stuck),
        unknowns_found(result.unknowns),
    ):
        context.log_event(
            dg.AssetCheckEvaluation(  # type: ignore[arg-type]  # accepted, though the annotation does not say so
                asset_key=requests, partition=context.partition_key, **found
            )
        )


def cases_found(open_cases: int) -> dict[str, Any]:
    """What the check `no_open_cases` says of so many open dead letters."""
    return {
        "check_name": NO_OPEN_CASES,
        "passed": open_cases == 0,
        "severity": dg.AssetCheckSeverity.ERROR,
        "metadata": {"open_dead_letters": open_cases},
    }


def waiting_found(waiting: Waiting) -> dict[str, Any]:
    """What the check `approvals_answered` says of a batch's open approval requests; late ones are a warning."""
    return {
        "check_name": APPROVALS_ANSWERED,
        "passed": waiting.late == 0,
        "severity": dg.AssetCheckSeverity.WARN,
        "metadata": {
            "waiting": waiting.open,
            "late": waiting.late,
            "oldest_waiting_hours": round(waiting.oldest_seconds / 3600, 2),
        },
    }
