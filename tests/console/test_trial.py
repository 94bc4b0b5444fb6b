"""`failsafe try` shows what would be proposed and decided, and touches nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.console.conftest import Terminal


@pytest.fixture
def nowhere(tmp_path: Path) -> Terminal:
    """A terminal without a store: whatever asks for one fails."""
    return Terminal("postgresql+psycopg://nowhere.invalid/x", tmp_path)


def write(folder: Path, *payloads: dict[str, object]) -> Path:
    """A file of requests."""
    file = folder / "requests.jsonl"
    lines = (json.dumps({"operation_id": str(number), "payload": one}) for number, one in enumerate(payloads))
    file.write_text("\n".join(lines))
    return file


def test_each_request_is_taken_to_its_decision(nowhere: Terminal, tmp_path: Path) -> None:
    """Low is automatic, over the limit is reviewed with its reason, an abstention goes to a person."""
    file = write(
        tmp_path,
        {"order_id": "1", "amount": "20.00 EUR"},
        {"order_id": "2", "amount": "60.00 EUR"},
        {"order_id": "3", "amount": "?"},
    )
    low, medium, abstained = nowhere.json("try", "refunds", file)
    assert (low["tier"], low["decision"], low["mode"]) == ("low", "auto", "live")
    assert low["actions"][0]["parameters"] == {"order_id": "1", "amount": {"minor": 2000, "currency": "EUR"}}
    assert (medium["tier"], medium["decision"], medium["reason"]) == ("medium", "review", "above the clerk's limit")
    assert (abstained["decision"], abstained["reason"]) == ("needs_review", "the model abstained: no amount is stated")
    text = nowhere.said("try", "refunds", file)
    assert "above the clerk's limit" in text
    assert "mode live" in text


def test_findings_are_shown(nowhere: Terminal, tmp_path: Path) -> None:
    """What validation finds is listed, and a proposal that cannot be sealed is refused with its finding."""
    [unreadable] = nowhere.json("try", "refunds", write(tmp_path, {"order_id": "1", "amount": "a lot"}))
    assert unreadable["decision"] == "needs_review"
    assert [one["code"] for one in unreadable["findings"]] == ["bad_value"]


def test_a_wrong_row_is_told_and_the_others_go_on(nowhere: Terminal, tmp_path: Path) -> None:
    """Exit code 1, as `submit` would have it."""
    file = write(tmp_path, {"order_id": 1}, {"order_id": "2", "amount": "20.00 EUR"})
    wrong, good = nowhere.json("try", "refunds", file, exit_code=1)
    assert {one["field"] for one in wrong["problems"]} == {"payload.order_id", "payload.amount"}
    assert good["decision"] == "auto"
