"""What the tests of the harness share."""

from __future__ import annotations

from tests.faults.fixtures import place

__all__ = ["place"]
