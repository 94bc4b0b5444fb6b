"""The actions that adapter tests execute."""

from __future__ import annotations

from policies.actions import Action
from policies.money import Money


class Pay(Action, name="pay.send", reversible=False, sensitivity="financial"):
    """Sends money."""

    payee: str
    amount: Money
    note: str = ""


def pay(minor: int = 4820, payee: str = "Ann", note: str = "") -> Pay:
    """A payment in euro cents."""
    return Pay(payee=payee, amount=Money(minor=minor, currency="EUR"), note=note)
