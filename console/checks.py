"""One result of `failsafe doctor`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Check:
    """What was looked at and how it is: `ok`, `advised` (better otherwise) or `missing` (must be mended)."""

    name: str
    level: Literal["ok", "advised", "missing"]
    says: str
