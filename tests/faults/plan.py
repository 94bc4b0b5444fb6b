"""The orders of one schedule, and what each may come to, whatever happens on the way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from random import Random

from tests.faults.providers import REFUSED
from tests.faults.workflow import STEPS

CERTAIN = ("keyed", "shared")
"""Payments whose provider honours keys or shares the transaction: exactly once is promised for these."""


class Fate(StrEnum):
    """What is decided about an order, by policy or by people."""

    AUTO = "auto"
    APPROVED = "approved"
    UNDONE = "undone"  # released, but the payment is refused and what was reserved is given back
    DENIED = "denied"
    UNANSWERED = "unanswered"  # nobody votes, so the approval expires
    TOO_MUCH = "too_much"  # policy refuses it
    ABSTAINED = "abstained"


RELEASED = frozenset({Fate.AUTO, Fate.APPROVED, Fate.UNDONE})

_AMOUNTS = {Fate.APPROVED: "80", Fate.DENIED: "90", Fate.UNANSWERED: "70", Fate.TOO_MUCH: "800"}


@dataclass(frozen=True)
class Planned:
    """One order: its payment, the steps beside, and its fate."""

    order: str
    pay: str
    fate: Fate
    steps: tuple[str, ...] = ()

    @property
    def payload(self) -> dict[str, str]:
        """What is submitted."""
        steps = "abstain" if self.fate is Fate.ABSTAINED else ",".join(self.steps)
        total = f"TOTAL {_AMOUNTS.get(self.fate, '20')}.00 EUR"
        return {"order_id": self.order, "total": total, "pay": self.pay, "steps": steps}

    @property
    def effects(self) -> list[str]:
        """The action types of its effects, all done, in any order."""
        return [f"pay.{self.pay}", *(STEPS[step].action_type.name for step in self.steps)]

    @property
    def certain(self) -> bool:
        """Whether all that matters of it is at providers for which exactly once is promised."""
        return self.pay in CERTAIN

    @property
    def ends(self) -> frozenset[str]:
        """The states that it may be in when nothing is due any more and nobody else intervened."""
        if self.fate in (Fate.AUTO, Fate.APPROVED):
            return frozenset({"completed"} if self.certain else {"completed", "dead_lettered"})
        return frozenset(
            {
                Fate.UNDONE: {"compensated"} if self.steps else {"failed"},
                Fate.DENIED: {"rejected"},
                Fate.UNANSWERED: {"expired"},
                Fate.TOO_MUCH: {"rejected"},
                Fate.ABSTAINED: {"needs_review"},
            }[self.fate]
        )


def usual(name: str, rng: Random, pays: Sequence[str] = ("keyed", "shared", "asked", "blind")) -> list[Planned]:
    """Orders of every fate; which providers and steps they touch is drawn."""
    reversible = ["reserve", "hold"] if "shared" in pays else ["reserve"]

    def steps() -> tuple[str, ...]:
        beside = [step for step in reversible if rng.random() < 0.5]
        return (*beside, *(["tell"] if rng.random() < 0.5 else []))

    def orders() -> Iterator[Planned]:
        number = iter(range(100))
        for pay in pays:
            yield Planned(f"{name}-{next(number)}", pay, Fate.AUTO, steps())
        yield Planned(f"{name}-{next(number)}", "keyed", Fate.AUTO, ("reserve", "tell"))
        yield Planned(
            f"{name}-{next(number)}", rng.choice([pay for pay in pays if pay in CERTAIN]), Fate.APPROVED, steps()
        )
        yield Planned(f"{name}-{next(number)}", rng.choice(pays), Fate.APPROVED, steps())
        yield Planned(f"{REFUSED}-{name}-{next(number)}", "keyed", Fate.UNDONE, (*reversible,))
        for fate in (Fate.DENIED, Fate.UNANSWERED, Fate.TOO_MUCH, Fate.ABSTAINED):
            if fate is Fate.UNANSWERED or rng.random() < 0.5:
                yield Planned(f"{name}-{next(number)}", rng.choice(pays), fate, steps())

    planned = list(orders())
    rng.shuffle(planned)
    return planned
