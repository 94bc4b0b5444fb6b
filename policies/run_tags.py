"""The tags by which Dagster and people find the runs of a batch."""

from __future__ import annotations

from typing import Final

BATCH: Final = "failsafe/batch"
"""Which batch a run advances; on every run, however it was started, so that a limit by unique value holds per batch."""

WHY: Final = "failsafe/why"
"""Why a sensor started the run."""

PUBLISHED: Final = "failsafe/published"
"""How many events a run brought to their receiver."""

PARKED: Final = "failsafe/parked"
"""How many events a run gave up; such a run is red because a person has to know, not because it did not work."""


def batch_tag(workflow: str, batch: str) -> str:
    """The value of `BATCH`: two workflows have batches of the same key, which must not wait for each other."""
    return f"{workflow}/{batch}"
