"""Foundation: the tables of schema failsafe."""

from __future__ import annotations

from pathlib import Path

from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create the tables."""
    op.execute(Path(__file__).with_name("0001_foundation.sql").read_text())
