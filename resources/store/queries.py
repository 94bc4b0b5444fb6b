"""Named SQL: `sql/claim_requests.sql` is `query("claim_requests")`; its first line says what it is for."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import sqlalchemy as sa

_FOLDER = Path(__file__).parent / "sql"


@cache
def query(name: str) -> sa.TextClause:
    """The statement in `sql/<name>.sql`, with `:name` parameters."""
    return sa.text((_FOLDER / f"{name}.sql").read_text())
