"""The batches of a workflow as Dagster's partitions."""

from __future__ import annotations

from datetime import datetime, time
from zoneinfo import ZoneInfo

import dagster as dg

from policies.batches import BatchWindows


def batch_partitions(windows: BatchWindows) -> dg.TimeWindowPartitionsDefinition:
    """One partition for each batch key. A window's partition exists from its first instant on (`end_offset=1`)."""
    since = datetime.combine(windows.since, time.min, ZoneInfo(windows.zone))
    if windows.kind == "hour":
        return dg.HourlyPartitionsDefinition(start_date=since, timezone=windows.zone, fmt=windows.format, end_offset=1)
    return dg.DailyPartitionsDefinition(start_date=since, timezone=windows.zone, fmt=windows.format, end_offset=1)
