"""`failsafe submit`: hand in the requests of a file."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from console.output import AsJson, print_json, print_lines, print_note
from console.row_files import read_rows
from console.store import store_url
from console.tokens import TokenFile, read_token
from console.workflow_modules import WorkflowModules, find_workflow
from policies.errors import RequestRefused
from resources.store.engine import Duty
from resources.store.intake import Submission, submit
from resources.store.rows import RowProblem

commands = typer.Typer()

PROBLEMS_SHOWN = 20
"""Lines printed; all of them stand in the rejects file."""


@commands.command("submit")
def submit_file(
    workflow: Annotated[str, typer.Argument(help="The workflow's name.")],
    file: Annotated[
        Path, typer.Argument(help="Requests: .jsonl or .csv, either of them .gz as well.", exists=True, dir_okay=False)
    ],
    workflow_module: WorkflowModules = None,
    token_file: TokenFile = None,
    as_json: AsJson = False,
) -> None:
    """Submit every request of a file; bad rows are reported by line, good ones go in.

    A line of a .jsonl file is {"operation_id": "...", "payload": {...}} and may have "subject". A .csv file has a
    column operation_id, perhaps subject, and one for each field of the request. Bad rows are written to
    FILE.rejects.jsonl with line and reason; correct the file and submit it again: what is in already stays as it is.
    Stopped at any moment and run again, nothing is doubled.

    Exit code 0: every row is in. 1: some were rejected. 2: the command was wrong.
    """
    definition = find_workflow(workflow, workflow_module)
    token = read_token(token_file)
    url = store_url(Duty.INTAKE)
    rejects_file = file.with_name(f"{file.name}.rejects.jsonl")
    tally = _Tally()
    with file.open("rb") as raw, _opened(rejects_file) as rejects, _progress(as_json) as bar:
        task = bar.add_task(file.name, total=file.stat().st_size) if bar else None

        def progress(part: Submission) -> None:
            tally.add(part)
            _write_rejects(rejects, part.problems)
            if bar is not None and task is not None:
                done = file.stat().st_size if raw.closed else raw.tell()
                bar.update(task, completed=done, description=f"{tally.rows} rows")

        try:
            submit(read_rows(file, raw), workflow=definition, token=token, database_url=url, progress=progress)
        except KeyboardInterrupt:
            print_note(f"stopped; {tally.rows} rows are dealt with. Run it again: nothing is doubled.")
            raise
    if not tally.rejected:
        rejects_file.unlink()
    _report(tally, rejects_file, as_json)
    if tally.rejected:
        raise typer.Exit(1)


def _opened(rejects_file: Path) -> TextIO:
    try:
        return rejects_file.open("w", encoding="utf-8")
    except OSError as error:
        raise RequestRefused(
            f"{rejects_file} cannot be written ({error.strerror}); bad rows must go somewhere"
        ) from None


class _Tally:
    """What became of the rows so far."""

    def __init__(self) -> None:
        self.accepted = self.replayed = self.rejected = self.conflicts = 0
        self.batches: Counter[str] = Counter()
        self.first_problems: list[RowProblem] = []

    @property
    def rows(self) -> int:
        return self.accepted + self.replayed + self.rejected

    def add(self, part: Submission) -> None:
        self.replayed += sum(receipt.replayed for receipt in part.receipts)
        self.accepted += sum(not receipt.replayed for receipt in part.receipts)
        self.rejected += len({problem.row for problem in part.problems})
        self.conflicts += sum(problem.conflict for problem in part.problems)
        self.batches.update(receipt.batch_key for receipt in part.receipts)
        self.first_problems += part.problems[: PROBLEMS_SHOWN - len(self.first_problems)]


def _report(tally: _Tally, rejects_file: Path, as_json: bool) -> None:
    if as_json:
        print_json(
            {
                "accepted": tally.accepted,
                "replayed": tally.replayed,
                "rejected": tally.rejected,
                "conflicts": tally.conflicts,
                "batches": tally.batches,
                "rejects_file": str(rejects_file) if tally.rejected else None,
            }
        )
        return
    for problem in tally.first_problems:
        print_note(f"line {problem.row}: {f'{problem.field} ' if problem.field else ''}{problem.reason}")
    print_lines(
        f"{tally.rows} rows: {tally.accepted} accepted, {tally.replayed} were in already, {tally.rejected} rejected"
        + (f" (all of them in {rejects_file})" if tally.rejected else "")
    )


def _write_rejects(rejects: TextIO, problems: Iterable[RowProblem]) -> None:
    by_row: dict[int, list[RowProblem]] = {}
    for problem in problems:
        by_row.setdefault(problem.row, []).append(problem)
    for line, found in by_row.items():
        reason = "; ".join(f"{one.field} {one.reason}".strip() for one in found)
        rejects.write(json.dumps({"line": line, "reason": reason, "row": _as_json(found[0].received)}) + "\n")
    rejects.flush()


def _as_json(received: Any) -> Any:
    """The row as JSON: a payload that is JSON itself is written as such."""
    if isinstance(received, bytes):
        try:
            return json.loads(received)
        except ValueError:
            return received.decode("utf-8", "backslashreplace")
    if isinstance(received, dict):
        return {name: _as_json(value) for name, value in received.items()}
    return received


def _progress(as_json: bool) -> Any:
    console = Console(stderr=True)
    if as_json or not console.is_terminal:
        return nullcontext()
    return Progress(TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn(), console=console)
