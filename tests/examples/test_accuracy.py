"""How well the extractor reads real receipts; the floors are what it reaches, less a small margin."""

from pathlib import Path
from typing import Any

import pytest

from examples.expenses.evaluate import evaluate, load, milliseconds

DEVELOPED_ON, NEVER_LOOKED_AT = slice(0, None, 2), slice(1, None, 2)


@pytest.fixture(scope="module")
def receipts(shared_data: Path) -> list[dict[str, Any]]:
    """The labelled receipts."""
    return load(shared_data / "receipts-sroie" / "receipts.jsonl.gz")


@pytest.mark.parametrize("part", [DEVELOPED_ON, NEVER_LOOKED_AT], ids=["developed on", "never looked at"])
@pytest.mark.parametrize(
    ("field", "right_of_stated", "coverage"), [("total", 0.98, 0.92), ("date", 0.99, 0.98), ("merchant", 0.93, 0.96)]
)
def test_real_receipts_are_read_as_well_as_documented(
    receipts: list[dict[str, Any]], part: slice, field: str, right_of_stated: float, coverage: float
) -> None:
    """What is stated is nearly always right, and most of what can be read is stated; both halves hold the floor."""
    figures = evaluate(receipts[part])[field].figures
    assert figures["right_of_stated"] >= right_of_stated
    assert figures["coverage"] >= coverage


def test_a_receipt_is_read_in_a_few_milliseconds(receipts: list[dict[str, Any]]) -> None:
    """Reading is no cost beside everything else; the bound leaves room for a busy machine."""
    assert milliseconds(receipts[:100]) < 5
