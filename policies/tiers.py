"""Risk tiers, from the lowest to the highest."""

from __future__ import annotations

from enum import StrEnum


class Tier(StrEnum):
    """How much harm an action could do; the highest tier of any rule that fires decides."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"

    @property
    def rank(self) -> int:
        """0 for the lowest; tiers compare by it, since their texts would compare by alphabet."""
        return _RANKS[self]


_RANKS = {tier: rank for rank, tier in enumerate(Tier)}
