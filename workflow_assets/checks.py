"""The asset checks of a workflow: each has a result for every batch, so that a good day does not hide a bad one."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import dagster as dg
import sqlalchemy as sa

from ops.run_report import cases_found, waiting_found
from ops.stuck_report import stuck_found, unknowns_found
from policies.asset_names import (
    APPROVALS_ANSWERED,
    AUDIT_LEDGER,
    CHAIN_INTACT,
    EVALUATION_METRICS,
    NO_DUPLICATE_EFFECTS,
    NO_EFFECT_WITHOUT_AUTHORITY,
    NO_OPEN_CASES,
    NO_STUCK_WORK,
    NO_UNRECONCILED_UNKNOWN,
    REQUEST_BATCH,
)
from resources.database_url import database_url
from resources.run_settings import lease_seconds
from resources.store.reading import reading
from resources.store.reports import open_cases, waiting_in_batch
from resources.store.stuck import lasting_unknowns, stuck_work
from resources.workflow import Workflow
from workflow_assets.partitions import batch_partitions

_REPORTED = (
    (AUDIT_LEDGER, CHAIN_INTACT, "Every event of every request is as it was written; none is missing."),
    (EVALUATION_METRICS, NO_DUPLICATE_EFFECTS, "No effect happened twice without having been undone in between."),
    (EVALUATION_METRICS, NO_EFFECT_WITHOUT_AUTHORITY, "Every effect had an automatic decision or enough votes."),
)


def report_checks(workflow: Workflow) -> list[dg.AssetCheckSpec]:
    """The checks that are evaluated where the assets of a settled batch are made."""
    with _preview_allowed():
        return [
            dg.AssetCheckSpec(
                check,
                asset=dg.AssetKey([workflow.name, asset]),
                description=description,
                partitions_def=batch_partitions(workflow.batches),
            )
            for asset, check, description in _REPORTED
        ]


def request_checks(workflow: Workflow) -> list[dg.AssetChecksDefinition]:
    """The checks that alerts belong on: evaluated at the end of every run, with every report, and whenever one asks."""
    return [
        _request_check(
            workflow,
            NO_OPEN_CASES,
            "The batch holds no dead letter that nobody has redriven, resolved or discarded.",
            lambda connection, batch: cases_found(open_cases(connection, workflow.name, batch)),
        ),
        _request_check(
            workflow,
            APPROVALS_ANSWERED,
            "No question to people has used up more than half of the time until it expires.",
            lambda connection, batch: waiting_found(waiting_in_batch(connection, workflow.name, batch)),
        ),
        _request_check(
            workflow,
            NO_STUCK_WORK,
            "All open work moves, waits for a person or waits for its time; nothing is held back for an hour.",
            lambda connection, batch: stuck_found(stuck_work(connection, workflow.name, batch, lease_seconds())),
        ),
        _request_check(
            workflow,
            NO_UNRECONCILED_UNKNOWN,
            "Of no effect it has been unknown for an hour, on top of what its provider needs, whether it happened.",
            lambda connection, batch: unknowns_found(lasting_unknowns(connection, workflow, batch)),
        ),
    ]


def _request_check(
    workflow: Workflow, name: str, description: str, look: Callable[[sa.Connection, str], dict[str, Any]]
) -> dg.AssetChecksDefinition:
    with _preview_allowed():

        @dg.asset_check(
            asset=dg.AssetKey([workflow.name, REQUEST_BATCH]),
            name=name,
            description=description,
            partitions_def=batch_partitions(workflow.batches),
        )
        def check(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
            with reading(database_url(), seconds=60) as connection:
                return dg.AssetCheckResult(**look(connection, context.op_execution_context.partition_key))

    return check


@contextmanager
def _preview_allowed() -> Iterator[None]:
    """Partitioned checks work in Dagster 1.13; it warns that their interface may change, which no user can act on."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.PreviewWarning)
        yield
