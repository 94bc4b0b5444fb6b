"""What the README shows works: its code loads, its policy fits, its commands exist."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from console.main import application

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    """The fenced blocks of a language, in order."""
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def command_lines() -> list[list[str]]:
    """Every command of the bash blocks, without comments."""
    lines = [line for block in blocks("bash") for line in block.splitlines()]
    return [words for line in lines if (words := shlex.split(line, comments=True))]


def test_the_workflow_of_the_readme_loads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its Python and its policy, copied as they stand into a folder, make a code location."""
    (tmp_path / "readme_refunds.py").write_text(blocks("python")[0], encoding="utf-8")
    (tmp_path / "policy.yaml").write_text(blocks("yaml")[0], encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    from importlib import import_module

    module = import_module("readme_refunds")
    assert module.defs.resolve_job_def("refunds_process_batch").partitions_def is not None
    del sys.modules["readme_refunds"]


@pytest.mark.parametrize("words", [words for words in command_lines() if words[0] == "failsafe"], ids=" ".join)
def test_each_command_of_the_readme_exists_with_its_options(words: list[str]) -> None:
    """`--help` of the command knows every option that the README uses."""
    names = [word for word in words[1:] if re.fullmatch(r"[a-z-]+", word) and not word.startswith("--")]
    options = [word for word in words if word.startswith("--")]
    path = names[:2] if names[0] in ("db", "principals") else names[:1]
    shown = CliRunner().invoke(application(), [*path, "--help"], env={"COLUMNS": "200", "TERM": "dumb"})
    assert shown.exit_code == 0, shown.output
    assert not [option for option in options if option not in shown.output]


@pytest.mark.parametrize("words", [words for words in command_lines() if words[0] == "make"], ids=" ".join)
def test_each_make_target_of_the_readme_exists(words: list[str]) -> None:
    """The Makefile has the target and says what it does."""
    assert re.search(rf"^{words[1]}:.*## ", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)


def test_every_page_that_the_readme_names_exists() -> None:
    """Links within the repository lead somewhere."""
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (ROOT / target).exists(), target
