"""Measures the extractor against labelled receipts and writes the figures into docs/evaluation.md.

    python -m examples.expenses.evaluate --receipts receipts.jsonl.gz

Each line of the file is an object with `text` and `fields` (`company`, `date`, `total` as printed).
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

from examples.expenses.extractor import read
from examples.expenses.reading import Reading

DOCUMENT = Path(__file__).parents[2] / "docs" / "evaluation.md"
BEGIN, END = "<!-- figures: written by examples.expenses.evaluate -->", "<!-- end of figures -->"


@dataclass(slots=True)
class Score:
    """How often a field was stated, and how often rightly; receipts without a label for it are not counted."""

    labelled: int = 0
    stated: int = 0
    right: int = 0

    @property
    def figures(self) -> dict[str, int | float]:
        """Everything that the table and the JSON show."""
        return {
            "labelled": self.labelled,
            "stated": self.stated,
            "right": self.right,
            "wrong": self.stated - self.right,
            "abstained": self.labelled - self.stated,
            "right_of_stated": round(self.right / self.stated, 4) if self.stated else 0.0,
            "coverage": round(self.stated / self.labelled, 4) if self.labelled else 0.0,
        }


def normalised(name: str) -> str:
    """A merchant's name as letters and digits only, so that spacing, case and punctuation do not count."""
    return "".join(character for character in name.upper() if character.isalnum())


def labelled_total(label: str) -> int | None:
    """Minor units of a label such as `RM 1,234.50`; None where it holds no amount."""
    found = re.search(r"-?\d[\d,]*(?:\.\d+)?", label)
    return int(Decimal(found[0].replace(",", "")).scaleb(2)) if found else None


def labelled_day(label: str) -> date | None:
    """The day of a label, day first; read by other means than the extractor reads, so that it judges and not agrees."""
    text = re.sub(r"[/., ]+", "-", label.strip())
    for notation in ("%d-%m-%Y", "%d-%m-%y", "%Y-%m-%d", "%d-%b-%Y", "%d-%b-%y", "%m-%d-%Y", "%Y%m%d", "%b-%d-%Y"):
        try:
            return date(*time.strptime(text, notation)[:3])
        except ValueError:
            continue
    return None


# Field: what the label says, what was read; None is "no label" and "abstained".
JUDGED: dict[str, tuple[Callable[[dict[str, str]], Any], Callable[[Reading], Any]]] = {
    "merchant": (
        lambda label: normalised(label["company"]) or None,
        lambda reading: reading.merchant and normalised(reading.merchant.value),
    ),
    "date": (lambda label: labelled_day(label["date"]), lambda reading: reading.date and reading.date.value),
    "total": (
        lambda label: labelled_total(label["total"]),
        lambda reading: None if reading.total is None else int(reading.total.value.scaleb(2)),
    ),
}


def load(path: Path) -> list[dict[str, Any]]:
    """The labelled receipts of a JSON Lines file, compressed or not."""
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def evaluate(receipts: Iterable[dict[str, Any]]) -> dict[str, Score]:
    """The score of each field over `receipts`."""
    scores = {field: Score() for field in JUDGED}
    for receipt in receipts:
        reading = read(receipt["text"])
        for field, (label_of, value_of) in JUDGED.items():
            label, value = label_of(receipt["fields"]), value_of(reading)
            if label is not None:
                scores[field].labelled += 1
                scores[field].stated += value is not None
                scores[field].right += value == label
    return scores


def milliseconds(receipts: Iterable[dict[str, Any]]) -> float:
    """Median time to read one receipt."""
    times = []
    for receipt in receipts:
        begun = time.perf_counter()
        read(receipt["text"])
        times.append((time.perf_counter() - begun) * 1000)
    return round(statistics.median(times), 3)


def table(parts: dict[str, list[dict[str, Any]]]) -> str:
    """A Markdown table of every field over every part."""
    rows = [
        "| receipts | field | labelled | stated | right | wrong | abstained | right of stated | coverage |",
        "|---|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for name, receipts in parts.items():
        for field, score in evaluate(receipts).items():
            *counts, right, coverage = score.figures.values()
            cells = " | ".join(str(count) for count in counts)
            rows.append(f"| {name} | {field} | {cells} | {right:.1%} | {coverage:.1%} |")
    return "\n".join(rows)


def write_figures(document: Path, shown: str) -> None:
    """Put the table between the marks of the document.

    Raises:
        ValueError: the document has no marks.
    """
    head, begun, rest = document.read_text(encoding="utf-8").partition(BEGIN)
    _, ended, tail = rest.partition(END)
    if not begun or not ended:
        raise ValueError(f"{document}: write the lines {BEGIN} and {END} where the figures belong")
    document.write_text(f"{head}{BEGIN}\n\n{shown}\n\n{END}{tail}", encoding="utf-8")


def main() -> None:
    """Print the figures and, unless told otherwise, write them into the document."""
    parser = argparse.ArgumentParser(prog="python -m examples.expenses.evaluate", description=__doc__)
    parser.add_argument("--receipts", type=Path, required=True, help="JSON Lines with text and fields, .gz or plain")
    parser.add_argument("--json", action="store_true", help="print the figures over all receipts as one JSON line")
    parser.add_argument("--print-only", action="store_true", help="leave docs/evaluation.md as it is")
    options = parser.parse_args()
    receipts = load(options.receipts)
    shown = table({"all": receipts, "even lines": receipts[0::2], "odd lines": receipts[1::2]})
    if not options.print_only:
        write_figures(DOCUMENT, shown)
    if options.json:
        figures = {field: score.figures for field, score in evaluate(receipts).items()}
        print(json.dumps({"receipts": len(receipts), "fields": figures, "median_milliseconds": milliseconds(receipts)}))
    else:
        print(shown)
        print(f"\n{len(receipts)} receipts, median {milliseconds(receipts)} ms each")


if __name__ == "__main__":
    main()
