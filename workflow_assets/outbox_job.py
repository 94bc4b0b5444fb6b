"""The job `publish_outbox`: there is one for a code location, whatever workflows it has."""

from __future__ import annotations

import dagster as dg

from ops.publish_outbox import publish_outbox
from ops.publishing import RUN_SECONDS, Publisher
from resources.database_url import database_url
from resources.outbox.destination import Destination


def outbox_job(destination: Destination) -> dg.JobDefinition:
    """The job that publishes to it; no run config, and neither address nor secret is part of the definition."""
    return publish_outbox.to_job(
        name="publish_outbox",
        description="Delivers events of the outbox to their destination, in order within a request. Safe to run again.",
        resource_defs={
            "publisher": dg.ResourceDefinition(
                resource_fn=lambda _context: Publisher(destination, database_url()),
                description="The destination, and the store its events come from.",
            )
        },
        executor_def=dg.in_process_executor,
        tags={
            "dagster/retry_on_asset_or_op_failure": "false",
            "dagster/max_runtime": str(int(3 * RUN_SECONDS)),  # its process is gone, or hangs
        },
    )
