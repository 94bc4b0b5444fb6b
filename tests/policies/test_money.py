"""Money in minor units."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from policies.money import MAX_EXACT_INTEGER, Money


@pytest.mark.parametrize(
    ("text", "minor", "currency"),
    [("50.00 EUR", 5000, "EUR"), ("-0.05 USD", -5, "USD"), ("1200 JPY", 1200, "JPY"), ("1.234 KWD", 1234, "KWD")],
)
def test_text_is_read_to_the_minor_unit(text: str, minor: int, currency: str) -> None:
    """The currency decides how many decimals there are."""
    assert Money.parse(text) == Money(minor=minor, currency=currency)


@pytest.mark.parametrize(
    "text",
    ["50", "EUR 50", "50.001 EUR", "1.5 JPY", "1,50 EUR", "NaN EUR", "1e3 EUR", "50.00 eur", "٥ EUR", "50.00 EUR\n"],
)
def test_text_that_is_no_exact_amount_is_refused(text: str) -> None:
    """No rounding, no guessing at separators, no other digits."""
    with pytest.raises(ValidationError):
        Money.parse(text)


@given(st.integers(-MAX_EXACT_INTEGER, MAX_EXACT_INTEGER), st.sampled_from(["EUR", "JPY", "KWD"]))
def test_money_reads_back_what_it_writes(minor: int, currency: str) -> None:
    """The text of an amount is the amount, as far as the text form reaches."""
    money = Money(minor=minor, currency=currency)
    if abs(minor) < 10**15:
        assert Money.parse(str(money)) == money
