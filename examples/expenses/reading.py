"""What was read from one receipt: a value with the words it was read from, or nothing where it is not certain."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Generic, TypeVar

Value_co = TypeVar("Value_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Field(Generic[Value_co]):
    """One value, the verbatim part of the text it stands in, and the checks that confirm it."""

    value: Value_co
    quote: str
    checks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reading:
    """The fields of a receipt; `None` is an abstention. The total is in major units (`48.20`)."""

    merchant: Field[str] | None
    date: Field[date] | None
    total: Field[Decimal] | None
    currency: Field[str] | None
