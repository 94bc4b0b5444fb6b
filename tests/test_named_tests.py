"""Tables in the documentation name tests as evidence: each of them exists, so that no table can rot."""

from __future__ import annotations

import ast
import re
from functools import cache

import pytest

from tests.conftest import ROOT

DOCUMENTS = ("faults.md", "public-failures.md")
ALIAS = re.compile(r"`(\w+)` is `tests/([\w/]+)\.py`")
NAMED = re.compile(r"`([\w/]*)::(test_\w+)`")
WHOLE_FILE = re.compile(r"`([\w/]+)` \(every test")
CHECK = re.compile(r"conformance \*([^*]+)\*")


@cache
def functions(file: str) -> frozenset[str]:
    """The tests of a file under `tests/`; none where there is no such file."""
    path = ROOT / "tests" / f"{file}.py"
    tree = ast.parse(path.read_text()) if path.is_file() else ast.Module([], [])
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))


def named(text: str) -> list[tuple[str, str]]:
    """File and function of every test that a document names; `::test_x` is in the file named before it in its row."""
    aliases = dict(ALIAS.findall(text))
    found = []
    for line in text.splitlines():
        last = ""
        for file, test in NAMED.findall(line):
            last = aliases.get(file, file) or last
            found.append((last, test))
    return found


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_test_that_is_named_exists(document: str) -> None:
    """A test that was renamed or removed is missed here, not by a reader."""
    found = named((ROOT / "docs" / document).read_text())
    assert len(found) > 50
    assert [f"{file}::{test}" for file, test in found if test not in functions(file)] == []


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_row_names_a_test(document: str) -> None:
    """What is only said is not shown."""
    text = (ROOT / "docs" / document).read_text()
    rows = [line for line in text.splitlines() if line.startswith("| ") and not line.startswith("| family")]
    tables = [line for line in rows if not re.match(r"\| (what happened|behaviour|`)", line)]
    assert len(tables) > 20
    evidence = (NAMED, CHECK, WHOLE_FILE)
    assert [line for line in tables if not any(one.search(line) for one in evidence)] == []


def test_every_check_that_is_named_is_in_the_suite() -> None:
    """By the words under which a user sees it."""
    suite = (ROOT / "resources" / "adapters" / "conformance.py").read_text()
    checks = CHECK.findall((ROOT / "docs" / "faults.md").read_text())
    assert checks
    assert [check for check in checks if f'"{check}"' not in suite] == []
