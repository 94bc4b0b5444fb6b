"""Reading files of requests: JSON lines (plain or gzipped) and CSV. An unreadable line is a problem, not an end."""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import typer

from policies.errors import CanonicalFormError, RequestRefused
from policies.strict_json import read_json, read_members
from resources.store.rows import MAX_PAYLOAD, RowProblem

Row = tuple[int, Mapping[str, Any] | RowProblem]


def read_rows(file: Path, raw: BinaryIO | None = None) -> Iterator[Row]:
    """The rows of a file with their line numbers, as `submit` takes them; `raw` is the open file, to see how far it is.

    JSON lines: `{"operation_id": ..., "subject": ..., "payload": {...}}`. CSV: a header with `operation_id`, perhaps
    `subject`, and one column for each field of the request; an empty cell counts as a field left out.

    Raises:
        typer.BadParameter: the file's name ends in nothing known, or a CSV has no such header.
        RequestRefused: the file is damaged; the rows before the damage were given.
    """
    name = file.name.lower()
    with raw or file.open("rb") as opened:
        content = gzip.GzipFile(fileobj=opened) if name.endswith(".gz") else opened
        try:
            match Path(name.removesuffix(".gz")).suffix:
                case ".jsonl":
                    yield from _json_lines(content)
                case ".csv":
                    yield from _csv_rows(content, file)
                case _:
                    raise typer.BadParameter(f"{file}: name it .jsonl, .csv, .jsonl.gz or .csv.gz", param_hint="FILE")
        except (OSError, EOFError, zlib.error) as error:
            raise RequestRefused(
                f"{file} cannot be read to its end ({type(error).__name__}); mend it and run this again"
            ) from error


def _json_lines(content: Any) -> Iterator[Row]:
    for number, line in enumerate(content, start=1):
        text = line.removeprefix(BOM_UTF8) if number == 1 else line
        if text.strip():
            yield number, _json_row(number, text)


def _json_row(number: int, line: bytes) -> Mapping[str, Any] | RowProblem:
    try:
        read_json(line)  # one value for one text: no key twice, no NaN
        row = _members(line.decode("utf-8"))
    except CanonicalFormError as error:
        return RowProblem(number, "", str(error), line.decode("utf-8", "backslashreplace").rstrip("\r\n"))
    if row is None:
        return RowProblem(number, "", "is no JSON object", line.decode("utf-8").rstrip("\r\n"))
    return row


def _members(text: str) -> dict[str, Any] | None:
    """The members of valid JSON, the payload as the very bytes that stand in the text; None if it is no object."""
    members = read_members(text)
    if members is None:
        return None
    return {
        name: written.encode() if name == "payload" and isinstance(value, dict) else value
        for name, (value, written) in members.items()
    }


def _csv_rows(content: Any, file: Path) -> Iterator[Row]:
    csv.field_size_limit(MAX_PAYLOAD)
    # A byte that is no UTF-8 becomes a lone surrogate, which the row is then refused for; the other rows stand.
    with io.TextIOWrapper(content, encoding="utf-8-sig", errors="surrogateescape", newline="") as text:
        rows = csv.reader(text)
        header = next(rows, [])
        if "operation_id" not in header or len(set(header)) < len(header):
            problem = "the first line must name the columns, operation_id among them, each once"
            raise typer.BadParameter(f"{file}: {problem}", param_hint="FILE")
        while True:
            number = rows.line_num + 1
            try:
                cells = next(rows)
            except StopIteration:
                return
            except csv.Error as error:
                yield number, RowProblem(number, "", f"is no CSV: {error}")
            else:
                if cells:
                    yield number, _csv_row(number, header, cells)


def _csv_row(number: int, header: list[str], cells: list[str]) -> Mapping[str, Any] | RowProblem:
    if len(cells) != len(header):
        return RowProblem(number, "", f"has {len(cells)} cells, the header has {len(header)}", cells)
    row: dict[str, Any] = {name: cell for name, cell in zip(header, cells, strict=True) if cell}
    own: dict[str, Any] = {name: row.pop(name) for name in ("operation_id", "subject") if name in row}
    return {**own, "payload": row}
