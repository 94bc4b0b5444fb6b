"""What a restored store may have forgotten is looked up, no step is tried for ever, late effects can be undone."""

from __future__ import annotations

from pathlib import Path

from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Create the table of epochs and the columns for restores, deadlines and late undos."""
    op.execute(Path(__file__).with_name("0002_restores_and_deadlines.sql").read_text())
