"""What the state machine runs on."""

from __future__ import annotations

from tests.faults.fixtures import place

__all__ = ["place"]
