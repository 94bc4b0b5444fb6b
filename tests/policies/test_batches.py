"""Batch windows, compared with Dagster's own partitions."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import dagster as dg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.batches import HOUR_FORMAT, daily, hourly
from policies.errors import DefinitionError

ZONES = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "America/Havana",
    "Asia/Kolkata",
    "Australia/Lord_Howe",
    "Africa/Cairo",
]
YEAR_END = datetime(2026, 1, 1, 0, 0, 1, tzinfo=UTC)


@pytest.mark.parametrize("zone", ZONES)
def test_days_are_dagsters_for_a_year(zone: str) -> None:
    """Over a year, changes of clocks included, keys and bounds are those of Dagster's daily partitions."""
    ours = daily("2025-01-01", zone)
    theirs = dg.DailyPartitionsDefinition("2025-01-01", timezone=zone, end_offset=1)
    keys = list(ours.keys(YEAR_END))
    with dg.partition_loading_context(effective_dt=YEAR_END):
        assert keys == list(theirs.get_partition_keys())
    for key in keys:
        window = theirs.time_window_for_partition_key(key)
        start, end = ours.bounds(key)
        assert (start.timestamp(), end.timestamp()) == (window.start.timestamp(), window.end.timestamp())


def test_hours_are_dagsters_for_a_year() -> None:
    """Over a year keys and bounds are those of Dagster's hourly partitions in UTC."""
    ours = hourly("2025-01-01")
    theirs = dg.TimeWindowPartitionsDefinition(
        start="2025-01-01-00", fmt=HOUR_FORMAT, cron_schedule="0 * * * *", timezone="UTC", end_offset=1
    )
    keys = list(ours.keys(YEAR_END))
    with dg.partition_loading_context(effective_dt=YEAR_END):
        assert keys == list(theirs.get_partition_keys())
    for key in keys[:: 24 * 7]:
        window = theirs.time_window_for_partition_key(key)
        assert ours.bounds(key) == (window.start, window.end)


@given(
    st.datetimes(datetime(2020, 1, 1), datetime(2035, 1, 1)),  # noqa: DTZ001 - hypothesis adds the zone itself
    st.sampled_from(ZONES),
    st.booleans(),
)
def test_an_instant_lies_in_the_window_of_its_key(instant: datetime, zone: str, by_hour: bool) -> None:
    """The key computed from an instant names the one window that holds it."""
    at = instant.replace(tzinfo=UTC)
    windows = hourly("2020-01-01") if by_hour else daily("2020-01-01", zone)
    start, end = windows.bounds(windows.key_for(at))
    assert start <= at < end


def test_the_current_window_counts_from_its_first_instant() -> None:
    """Today's key exists from local midnight on and not before."""
    windows = daily("2026-03-01", "Europe/Berlin")
    midnight = datetime(2026, 3, 3, tzinfo=ZoneInfo("Europe/Berlin"))
    assert list(windows.keys(midnight)) == ["2026-03-01", "2026-03-02", "2026-03-03"]
    assert list(windows.keys(midnight - timedelta(microseconds=1))) == ["2026-03-01", "2026-03-02"]


def test_there_are_no_keys_before_the_start() -> None:
    """A workflow that starts in the future has no batch yet."""
    assert list(daily("2026-03-01").keys(datetime(2026, 2, 28, tzinfo=UTC))) == []


@pytest.mark.parametrize("key", ["2026-3-1", "2026-03-01-00", "2026-02-30", "", "2026-03-01\n", "٢٠٢٦-03-01"])
def test_a_key_of_another_form_raises(key: str) -> None:
    """Only the exact form of a key is accepted."""
    with pytest.raises(ValueError, match=r"."):
        daily("2026-01-01").bounds(key)


def test_an_instant_needs_its_zone() -> None:
    """A time without a zone is refused instead of being taken for UTC."""
    with pytest.raises(ValueError, match="needs its zone"):
        daily("2026-01-01").key_for(datetime(2026, 1, 1))  # noqa: DTZ001 - that is the mistake


def test_mistakes_in_a_definition_name_their_remedy() -> None:
    """A wrong zone or date says what to write instead."""
    with pytest.raises(DefinitionError, match="IANA"):
        daily("2026-01-01", "Berlin")
    with pytest.raises(DefinitionError, match="2026-11-01"):
        daily("01.01.2026")
    with pytest.raises(DefinitionError, match="2026-11-01"):
        hourly("today")
    assert daily(date(2026, 1, 1)) == daily("2026-01-01")
