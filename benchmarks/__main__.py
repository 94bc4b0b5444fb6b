"""`python -m benchmarks`: how fast the job is, against a floor, in one go; the last line printed is JSON."""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import asdict

from benchmarks.databases import NotDurable, databases
from benchmarks.measurement import Figures, measure

TARGETS: dict[str, tuple[str, float]] = {
    "ratio": ("at least", 0.35),
    "with_provider_ratio": ("at least", 0.5),
    "commits_per_request": ("at most", 0.05),
    "rss_mb": ("at most", 250),
    "events_per_run": ("at most", 120),
    "flatness": ("at least", 0.85),
}


def main() -> int:
    """Measure, and say what was found."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--requests", type=int, default=20_000, help="requests of one measurement (default 20,000)")
    parser.add_argument("--json", action="store_true", help="print the JSON line alone")
    arguments = parser.parse_args()
    if arguments.requests < 1:
        parser.error("--requests must be at least 1")
    began = time.monotonic()
    try:
        with databases() as server:
            _say(f"PostgreSQL {server.version()}, fsync and synchronous_commit on")
            figures = measure(server, arguments.requests, _say)
    except NotDurable as error:
        parser.exit(2, f"{error}\n")
    _say(f"{time.monotonic() - began:8.1f} s  in all")
    if not arguments.json:
        print(_table(figures))
    print(json.dumps(asdict(figures)))
    return 0


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _table(figures: Figures) -> str:
    lines = []
    for name, value in asdict(figures).items():
        target = ""
        if name in TARGETS:
            way, limit = TARGETS[name]
            met = value >= limit if way == "at least" else value <= limit
            target = f"{way} {limit:g}: {'met' if met else 'MISSED'}"
        lines.append(f"{name:24} {value:>12,}  {target}".rstrip())
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
