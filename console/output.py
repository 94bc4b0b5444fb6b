"""What commands print: tables or lines for people, JSON for programs. Foreign text is made visible, never markup."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from policies.redaction import visible

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text for people.")]

WIDTH_OF_A_PIPE = 200
"""Columns assumed where the output is no terminal, so that nothing is cut in a log or by `grep`."""


def print_json(value: Any) -> None:
    """One JSON document on standard output; characters beyond ASCII are escaped, so it is safe on any terminal."""
    print(json.dumps(value, default=_plain))


def print_lines(*lines: str) -> None:
    """Lines for people on standard output."""
    for line in lines:
        print(visible(line))


def print_note(line: str) -> None:
    """A remark on standard error, beside whatever goes to standard output."""
    print(visible(line), file=sys.stderr)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]], empty: str) -> None:
    """A table, or the line `empty` where there is nothing to show."""
    table = Table(*columns, box=None, pad_edge=False, header_style="bold")
    for row in rows:
        table.add_row(*(Text(shown(cell)) for cell in row))
    if not table.row_count:
        print_lines(empty)
        return
    console = Console(highlight=False)
    console.width = console.width if console.is_terminal else WIDTH_OF_A_PIPE
    console.print(table)


def shown(cell: object) -> str:
    """A value as people read it: instants in local time, nothing for None."""
    if cell is None:
        return ""
    if isinstance(cell, datetime):
        return cell.astimezone().strftime("%Y-%m-%d %H:%M:%S %Z")
    if isinstance(cell, list | tuple):
        return ", ".join(map(shown, cell))
    return visible(str(cell))


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    return str(value)
