"""The one name that users import."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import dagster_failsafe as fs
from resources.records import Records
from tests.conftest import ROOT


def run(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs code as a code location in `folder` would: its own folder first on the path, the package after it."""
    setup = f"import sys; sys.path[:0] = [{str(folder)!r}, {str(ROOT)!r}]\n"
    return subprocess.run([sys.executable, "-c", setup + code], capture_output=True, text=True, check=False, cwd=folder)


def test_a_package_that_hides_one_of_ours_is_named_with_the_remedy(tmp_path: Path) -> None:
    """A code location with a folder of the same name would load half of this package and half of its own."""
    (tmp_path / "resources").mkdir()
    (tmp_path / "resources" / "__init__.py").write_text("")
    failed = run("import dagster_failsafe", tmp_path)
    assert failed.returncode == 1
    assert f"from {ROOT / 'resources'}, but Python finds {tmp_path / 'resources'}; rename that one" in failed.stderr


def test_a_module_that_hides_one_of_ours_is_named(tmp_path: Path) -> None:
    """A single file does the same harm."""
    (tmp_path / "ops.py").write_text("")
    assert f"but Python finds {tmp_path / 'ops.py'}" in run("import dagster_failsafe", tmp_path).stderr


def test_importing_it_is_cheap_and_complete_enough_for_a_run(tmp_path: Path) -> None:
    """A run imports what a definition needs; what only other processes need comes when it is asked for."""
    heavy = ("pandas", "starlette", "typer", "alembic", "rich", "httpx", "httpcore", "psycopg", "uvicorn")
    code = f"import dagster_failsafe; print([name for name in {heavy} if name in sys.modules])"
    shown = run(code, tmp_path)
    assert shown.stdout.strip() == "[]", shown.stderr


def test_names_are_sorted_listed_once_and_unknown_ones_refused() -> None:
    """`__all__` is the public API."""
    assert fs.__all__ == sorted(set(fs.__all__), key=lambda name: (name[0].islower(), name))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        fs.nothing  # noqa: B018
    assert fs.testing.conformance.__name__ == "conformance"


def test_records_find_many_by_finding_each() -> None:
    """A service that answers one key answers many."""

    class Even(Records):
        def find(self, key: str) -> fs.Record | None:
            return None if int(key) % 2 else fs.Record(record="even", key=key, fields={})

    found = Even().find_many(["1", "2"])
    assert found["1"] is None
    assert found["2"] == fs.Record(record="even", key="2", fields={})
