"""The made-up day of claims: the same every time, and one of everything that goes wrong."""

import json
from collections import Counter
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from examples.expenses.extractor import read
from examples.expenses.sample import Claim, claims, from_sroie, read_rows, rows, write

TODAY = date(2026, 11, 29)


@pytest.fixture(scope="module")
def sample() -> list[Claim]:
    """The sample of one day."""
    return claims(today=TODAY)


def of_kind(sample: list[Claim], kind: str) -> list[Claim]:
    """The claims of one kind, in order."""
    return [claim for claim in sample if claim.kind == kind]


def test_the_same_seed_and_day_give_the_same_rows() -> None:
    """A demo can be run again and its figures compared."""
    assert rows(7, today=TODAY) == rows(7, today=TODAY)
    assert rows(7, today=TODAY) != rows(8, today=TODAY)


def test_it_holds_each_kind_of_case(sample: list[Claim]) -> None:
    """About 240 requests, most of them ordinary, every operation once."""
    counted = Counter(claim.kind for claim in sample)
    assert len(sample) == 240
    assert counted == {
        "ordinary": 96, "blurry": 14, "duplicate": 16, "two scans": 12, "over the cap": 20, "high": 6,
        "far too high": 4, "foreign currency": 8, "hostile": 14, "NUL": 3, "lone surrogate": 2, "bidi": 3, "emoji": 4,
        "long line": 3, "old": 10, "missing total": 10, "unknown employee": 5, "inactive employee": 5,
        "closed budget": 5,
    }  # fmt: skip
    assert len({claim.row["operation_id"] for claim in sample}) == 240


def test_odd_characters_stand_where_their_kind_says(sample: list[Claim]) -> None:
    """What databases and people stumble over is really there."""
    expected = {"NUL": "\0", "lone surrogate": "\ud83d", "bidi": "\u202e", "emoji": "\U0001f64f"}
    for kind, character in expected.items():
        assert all(character in claim.row["payload"]["receipt"] for claim in of_kind(sample, kind))
    assert all(len(claim.row["payload"]["receipt"]) > 20_000 for claim in of_kind(sample, "long line"))


def test_duplicates_are_the_same_payload_under_another_operation(sample: list[Claim]) -> None:
    """Eight receipts handed in twice, word for word."""
    payloads = Counter(json.dumps(claim.row["payload"]) for claim in of_kind(sample, "duplicate"))
    assert sorted(payloads.values()) == [2] * 8


def test_two_scans_stand_beside_each_other_and_read_alike(sample: list[Claim]) -> None:
    """Other noise, the same merchant, day and total: only the reading shows that they are one receipt."""
    scans = of_kind(sample, "two scans")
    numbers = [sample.index(claim) for claim in scans]
    for first, second in zip(scans[::2], scans[1::2], strict=True):
        one, other = (read(claim.row["payload"]["receipt"]) for claim in (first, second))
        assert first.row["payload"]["receipt"] != second.row["payload"]["receipt"]
        assert one.merchant is not None
        assert other.merchant is not None
        assert (one.merchant.value, one.date and one.date.value, one.total and one.total.value) == (
            other.merchant.value, other.date and other.date.value, other.total and other.total.value
        )  # fmt: skip
    assert [second - first for first, second in zip(numbers[::2], numbers[1::2], strict=True)] == [1] * 6


def test_no_receipt_of_it_is_read_wrongly(sample: list[Claim]) -> None:
    """Blurred, hostile or odd: a total or day that is stated is the one that was paid."""
    for claim in sample:
        reading = read(claim.row["payload"]["receipt"])
        assert reading.total is None or reading.total.value == Decimal(claim.bought.total) / 100, claim
        assert reading.date is None or reading.date.value == claim.bought.day, claim


def test_ages_are_counted_from_the_given_day(sample: list[Claim]) -> None:
    """Old receipts are older than 90 days, all others younger."""
    for claim in sample:
        assert (TODAY - claim.bought.day > timedelta(days=90)) == (claim.kind == "old")
        assert claim.row["payload"]["handed_in"] == "2026-11-29"


def test_every_character_survives_the_file(tmp_path: Path) -> None:
    """The file is ASCII, and reading it gives the rows back."""
    path = tmp_path / "sample.jsonl"
    write(path, today=TODAY)
    assert path.read_bytes().isascii()
    assert read_rows(path) == rows(today=TODAY)


def test_real_receipts_become_requests_handed_in_two_weeks_later(shared_data: Path) -> None:
    """Their text is not touched; the day of handing in is a fact of the request."""
    made = from_sroie(shared_data / "receipts-sroie" / "receipts.jsonl.gz")
    assert len(made) == len({row["operation_id"] for row in made}) == 424
    ages = [
        date.fromisoformat(row["payload"]["handed_in"]) - reading.date.value
        for row in made
        if (reading := read(row["payload"]["receipt"])).date
    ]
    assert set(ages) == {timedelta(days=14)}
