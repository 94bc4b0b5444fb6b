"""How right is judged, and what the command writes."""

import gzip
import json
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from examples.expenses.evaluate import BEGIN, END, evaluate, labelled_day, labelled_total, load, write_figures

ROOT = Path(__file__).parents[2]
SURE = "TOKO CONTOH SDN BHD\nDATE 03/11/2026\nTOTAL 48.20\nCASH 50.00\nCHANGE 1.80"


def receipt(text: str = SURE, **labels: str) -> dict[str, Any]:
    """A labelled receipt."""
    return {
        "text": text,
        "fields": {"company": "Toko Contoh Sdn. Bhd.", "date": "3-11-26", "total": "RM48.20"} | labels,
    }


def test_stated_right_and_abstained_are_counted_apart() -> None:
    """A wrong reading is no abstention, and a receipt without a label is not counted at all."""
    unsure = SURE.replace("CHANGE 1.80", "CHANGE 9.99")
    total = evaluate([receipt(), receipt(total="48.21"), receipt(unsure), receipt(total="")])["total"]
    assert total.figures == {
        "labelled": 3, "stated": 2, "right": 1, "wrong": 1, "abstained": 1, "right_of_stated": 0.5, "coverage": 0.6667,
    }  # fmt: skip


def test_a_merchant_is_right_whatever_its_case_and_punctuation() -> None:
    """The same letters and digits are the same name; other ones are not."""
    assert evaluate([receipt()])["merchant"].right == 1
    assert evaluate([receipt(company="TOKO CONTOH")])["merchant"].right == 0


@pytest.mark.parametrize(
    ("label", "day"),
    [
        ("03/11/2026", date(2026, 11, 3)),
        ("3-11-26", date(2026, 11, 3)),
        ("03 NOV 2026", date(2026, 11, 3)),
        ("2026-11-03", date(2026, 11, 3)),
        ("NOV 3, 2026", date(2026, 11, 3)),
        ("11/23/2026", date(2026, 11, 23)),
        ("soon", None),
    ],
)
def test_a_label_of_a_day_is_read_day_first(label: str, day: date | None) -> None:
    """Labels are as varied as receipts."""
    assert labelled_day(label) == day


@pytest.mark.parametrize(("label", "total"), [("RM 1,234.50", 123450), ("$8.2", 820), ("-1.73", -173), ("", None)])
def test_a_label_of_a_total_is_read_in_minor_units(label: str, total: int | None) -> None:
    """Currency marks and separators do not count, the sign does."""
    assert labelled_total(label) == total


def test_the_figures_replace_those_that_stood_there(tmp_path: Path) -> None:
    """What people wrote around the figures stays; writing twice changes nothing."""
    document = tmp_path / "evaluation.md"
    document.write_text(f"above\n{BEGIN}\nold figures\n{END}\nbelow\n", encoding="utf-8")
    write_figures(document, "new figures")
    write_figures(document, "new figures")
    assert document.read_text(encoding="utf-8") == f"above\n{BEGIN}\n\nnew figures\n\n{END}\nbelow\n"


def test_a_document_without_marks_is_left_alone(tmp_path: Path) -> None:
    """Nobody's text is overwritten by a guess."""
    document = tmp_path / "evaluation.md"
    document.write_text("no marks", encoding="utf-8")
    with pytest.raises(ValueError, match="write the lines"):
        write_figures(document, "figures")
    assert document.read_text(encoding="utf-8") == "no marks"


def test_the_command_prints_one_json_line(tmp_path: Path) -> None:
    """Plain and compressed files give the same figures."""
    line = json.dumps(receipt()) + "\n"
    plain, packed = tmp_path / "receipts.jsonl", tmp_path / "receipts.jsonl.gz"
    plain.write_text(line, encoding="utf-8")
    packed.write_bytes(gzip.compress(line.encode()))
    assert load(plain) == load(packed)
    command = [sys.executable, "-m", "examples.expenses.evaluate", "--print-only", "--json", "--receipts", str(packed)]
    said = json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout)
    assert said["receipts"] == 1
    assert said["fields"]["total"]["right"] == 1


def test_the_document_shows_the_figures_and_none_of_the_data(shared_data: Path) -> None:
    """The page that people read is the one the command would write now, and quotes no receipt."""
    document = (ROOT / "docs" / "evaluation.md").read_text(encoding="utf-8")
    receipts = load(shared_data / "receipts-sroie" / "receipts.jsonl.gz")
    for field, score in evaluate(receipts).items():
        assert f"| all | {field} | {score.labelled} | {score.stated} | {score.right} |" in document
    assert not [one["fields"]["company"] for one in receipts if one["fields"]["company"] in document]
