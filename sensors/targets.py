"""What a sensor starts runs of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from policies.batches import BatchWindows

if TYPE_CHECKING:
    from dagster import JobDefinition, PartitionsDefinition
    from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition


@dataclass(frozen=True, slots=True)
class Target:
    """One workflow as a sensor sees it: a job, and the batches that job has as its partitions."""

    workflow: str
    windows: BatchWindows
    job: JobDefinition | UnresolvedAssetJobDefinition
    partitions: PartitionsDefinition[str]

    def has(self, batch: str) -> bool:
        """Whether the job has this batch now. One request for a key that it has not would fail the whole tick."""
        return self.partitions.has_partition_key(batch)
