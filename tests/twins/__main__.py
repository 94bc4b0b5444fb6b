"""`python -m tests.twins`: remove one guard at a time from a copy of the code; a named test must fail for each."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path

from resources.embedded_postgres import EmbeddedPostgres
from tests.twins.guards import TWINS, Change, Twin

ROOT = Path(__file__).resolve().parent.parent.parent
HOME = ROOT / ".failsafe" / "twins"

SIDE_BY_SIDE = 2

LONGEST = 300
"""Seconds that the named tests may take."""


class TwinError(Exception):
    """A twin cannot be made, or proves nothing: its change no longer applies, or its test fails with the guard too."""


@dataclass(frozen=True)
class Result:
    """What the test of a twin came to."""

    twin: Twin
    caught: bool
    seconds: float
    report: str


def main() -> int:
    """See every test pass with its guard and fail without it."""
    began = time.monotonic()
    with server() as url:
        try:
            _require_passing(url)
            with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
                results = list(pool.map(_tried, range(len(TWINS)), TWINS, repeat(url)))
        except TwinError as error:
            print(error)
            return 1
    width = max(len(twin.guard) for twin in TWINS)
    for result in results:
        verdict = "caught" if result.caught else "NOT CAUGHT"
        test = result.twin.test.rpartition("::")[2]
        print(f"{result.twin.guard:{width}}  {verdict:10}  {result.seconds:5.1f} s  {test}")
        if not result.caught:
            print(result.report)
    caught = sum(result.caught for result in results)
    print(json.dumps({"twins": len(TWINS), "caught": caught, "seconds": round(time.monotonic() - began, 1)}))
    return 0 if caught == len(TWINS) else 1


@contextmanager
def server() -> Iterator[str]:
    """One embedded server for all twins; each makes databases of its own."""
    shutil.rmtree(HOME / "copies", ignore_errors=True)
    embedded = EmbeddedPostgres(HOME / "postgres")
    embedded.start()
    try:
        yield embedded.url()
    finally:
        embedded.remove()
        shutil.rmtree(HOME, ignore_errors=True)


def applied(change: Change, text: str) -> str:
    """The file's text with the guard removed.

    Raises:
        TwinError: the text to replace does not stand there exactly once.
    """
    if text.count(change.old) != 1:
        raise TwinError(
            f"{change.file} holds {text.count(change.old)} times, not once: {change.old!r}; write the twin anew"
        )
    return text.replace(change.old, change.new)


def _require_passing(url: str) -> None:
    report = _run(ROOT, [twin.test for twin in TWINS], url)
    if " failed" in report or " error" in report or " passed" not in report:
        raise TwinError(f"with every guard in place the tests must pass, but: {report}")


def _tried(number: int, twin: Twin, url: str) -> Result:
    copy = HOME / "copies" / str(number)
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".failsafe", ".git", ".ci", "docs"))
    for change in twin.changes:
        file = copy / change.file
        file.write_text(applied(change, file.read_text()))
    began = time.monotonic()
    report = _run(copy, [twin.test], url)
    return Result(twin, _failed(report), time.monotonic() - began, report)


def _failed(report: str) -> bool:
    """A test failed by what it asserts. Anything else is none: the copy is broken, or the test is gone."""
    asserted = re.search(r"^\S+: (AssertionError|assert |Failed: )", report, re.MULTILINE)
    return bool(asserted) and bool(re.search(r"\b\d+ failed\b", report)) and " error" not in report


def _run(folder: Path, tests: Sequence[str], url: str) -> str:
    """Run tests and return what pytest says of them."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "--tb=line", *tests],
        cwd=folder,
        env={**os.environ, "FAILSAFE_TEST_DATABASE_URL": url},
        capture_output=True,
        text=True,
        timeout=LONGEST,
        check=False,
    )
    return done.stdout.strip() or done.stderr.strip() or "pytest said nothing"


if __name__ == "__main__":
    sys.exit(main())
