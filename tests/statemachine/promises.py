"""What each order must have come to in the end: what was promised, unless somebody decided otherwise on the way."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from resources.store.operator import Cancelled
from tests.faults.plan import RELEASED, Planned
from tests.faults.providers import REFUSED, STUCK

_UNDONE = frozenset({"compensated", "compensation_failed"})
_BY_ANSWER = {Cancelled.CANCELLED: frozenset({"cancelled"}), Cancelled.COMPENSATING: _UNDONE}


@dataclass
class Promises:
    """What was decided about the orders of one example, beyond their fates."""

    _may_be: dict[str, frozenset[str]] = field(default_factory=dict)
    uncertain: set[str] = field(default_factory=set)
    """Orders that were to be cancelled while nobody knew what became of an effect; where parked, it is asked again."""
    _must_be: dict[str, frozenset[str]] = field(default_factory=dict)

    def denied(self, order: str) -> None:
        """A lead said no. What was done in an earlier round is undone."""
        self._allow(order, _UNDONE | {"rejected"})

    def expired(self, orders: Iterable[str]) -> None:
        """Nobody said anything in time, likewise."""
        for order in orders:
            self._allow(order, _UNDONE | {"expired"})

    def cancelled(self, order: str, answer: Cancelled) -> None:
        """An operator stopped it, and was told what that came to; where that was not known yet, it may go on."""
        if answer is Cancelled.UNCERTAIN:
            self._allow(order, _UNDONE | {"cancelled"})
            self.uncertain.add(order)
        else:
            self._must_be[order] = _BY_ANSWER[answer]

    def ends(self, one: Planned) -> frozenset[str]:
        """The states in which an order may end, once providers work and operators have redriven what was parked."""
        return self._must_be.get(one.order) or _promised(one) | self._may_be.get(one.order, frozenset())

    def undisturbed(self, one: Planned) -> bool:
        """Whether the order was released and nobody decided otherwise, so that nothing but trouble may stop it."""
        return self.ends(one) == {"completed"}

    def _allow(self, order: str, states: frozenset[str]) -> None:
        self._may_be[order] = self._may_be.get(order, frozenset()) | states


def _promised(one: Planned) -> frozenset[str]:
    if one.fate not in RELEASED:
        return one.ends
    if not one.order.startswith((REFUSED, STUCK)):
        return frozenset({"completed"})
    if not {"reserve", "hold"}.intersection(one.steps):
        return frozenset({"failed"})
    return frozenset({"compensation_failed"}) if one.order.startswith(STUCK) and "reserve" in one.steps else _UNDONE
