"""Money: integer minor units with a currency, exact from the receipt to the ledger."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

MAX_EXACT_INTEGER = 2**53 - 1
"""Largest integer that every JSON reader keeps exactly (RFC 8785 section 3.2.2.3)."""

_MINOR_DIGITS = {"BHD": 3, "IQD": 3, "JOD": 3, "KWD": 3, "LYD": 3, "OMR": 3, "TND": 3} | dict.fromkeys(
    ("BIF", "CLP", "DJF", "GNF", "ISK", "JPY", "KMF", "KRW", "PYG", "RWF", "UGX", "VND", "VUV", "XAF", "XOF", "XPF"), 0
)
"""Currencies whose minor unit is not a hundredth (ISO 4217)."""


def minor_digits(currency: str) -> int:
    """Digits after the decimal point in `currency` (ISO 4217); 2 where the table does not say otherwise."""
    return _MINOR_DIGITS.get(currency, 2)


class Money(BaseModel):
    """An amount in minor units (cents) of one currency: `"50.00 EUR"` or `{"minor": 5000, "currency": "EUR"}`."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    minor: int = Field(ge=-MAX_EXACT_INTEGER, le=MAX_EXACT_INTEGER)
    currency: str = Field(pattern=r"^[A-Z]{3}$")

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        found = re.fullmatch(r"(-?[0-9]{1,15}(?:\.[0-9]{1,3})?) ([A-Z]{3})", value)
        if found is None:
            raise ValueError("write money as '50.00 EUR'")
        amount, currency = found.groups()
        return {"minor": cls.to_minor(amount, currency), "currency": currency}

    @staticmethod
    def to_minor(amount: str, currency: str) -> int:
        """Minor units of a plain decimal text such as `"48.20"`.

        Raises:
            ValueError: not a number, or finer than the currency's minor unit.
        """
        try:
            scaled = Decimal(amount).scaleb(minor_digits(currency))
        except InvalidOperation:
            raise ValueError(f"{amount!r} is not an amount") from None
        if not scaled.is_finite() or scaled != scaled.to_integral_value():
            raise ValueError(f"{amount!r} is finer than the minor unit of {currency}")
        return int(scaled)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Money from `"50.00 EUR"`."""
        return cls.model_validate(text)

    def __str__(self) -> str:
        digits = minor_digits(self.currency)
        return f"{Decimal(self.minor).scaleb(-digits):.{digits}f} {self.currency}"
