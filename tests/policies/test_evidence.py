"""Quotes must stand in their source and show the value they are given for."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.actions import Trust
from policies.evidence import Source, find_quote, record_source, source_text, stronger, support, weaker
from policies.money import Money
from policies.proposals import Evidence
from policies.records import Record

EUROS = Money(minor=4820, currency="EUR")


class Colour(Enum):
    """An enumeration as a parameter."""

    RED = "red"


def shown(value: Any, text: str, quote: str | None = None, stated: dict[str, Trust] | None = None) -> Trust | None:
    """How far a value is believed by one quote of a text that the principal gave."""
    found = find_quote(Evidence("p", "s", text if quote is None else quote), Source(text, Trust.PRINCIPAL))
    assert found is not None

    def currency_trust(code: str) -> Trust | None:
        return stated.get(code) if stated else None

    return support(value, [found], currency_trust)


@given(st.text(st.characters(), min_size=1), st.text(st.characters()), st.text(st.characters()))
def test_a_quote_is_found_exactly_where_it_stands(quote: str, before: str, after: str) -> None:
    """Any text, NUL and lone surrogates included, is found verbatim."""
    text = before + quote + after
    found = find_quote(Evidence("p", "s", quote), Source(text, Trust.UNTRUSTED))
    assert found is not None
    assert all(text[place : place + len(quote)] == quote for place in found.places)


@pytest.mark.parametrize(
    ("quote", "text"),
    [
        ("TOTAL 48.20", "TOTAL  48.20"),
        ("TOTAL 48.20", "Total 48.20"),
        ("TOTAL 48.20", "TOTAL\n48.20"),
        ("TOTAL\u00a048.20", "TOTAL 48.20"),
        ("\u00e9", "e\u0301"),
        ("e\u0301", "\u00e9"),
        ("", "TOTAL"),
        ("TOTAL", ""),
    ],
)
def test_a_quote_is_not_folded(quote: str, text: str) -> None:
    """White space, case and Unicode forms count: nearly verbatim is not verbatim."""
    assert find_quote(Evidence("p", "s", quote), Source(text, Trust.UNTRUSTED)) is None


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (EUROS, "TOTAL 48.20 EUR"),
        (EUROS, "EUR48,20"),
        (EUROS, "\u20ac 48.20"),
        (Money(minor=1234567, currency="EUR"), "1,234,567.00 and 12.345,67 EUR"),
        (Money(minor=1234, currency="JPY"), "JPY 1,234"),
        (Money(minor=-4820, currency="EUR"), "-48.20 EUR"),
        (48, "48 pieces"),
        (48, "48.00"),
        (-3, "it is -3 now"),
        (Decimal("0.10"), "rate 0.1"),
        (0.1, "rate 0.10"),
        (date(2018, 3, 25), "on 25/03/2018"),
        ("Ann", "to ANN, please"),
        ("straße", "STRASSE 1"),
        ("\u6771\u4eac", "\u5728\u6771\u4eac\u90fd"),
        ("A-17", "order A-17."),
        (Colour.RED, "a Red one"),
        (["Ann", "Bob"], "Ann and Bob"),
    ],
)
def test_values_that_a_quote_shows(value: Any, text: str) -> None:
    """Each type is read from a text in its own declared way."""
    assert shown(value, text) is Trust.PRINCIPAL


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (EUROS, "TOTAL 48.20"),
        (EUROS, "TOTAL 48.20 USD"),
        (EUROS, "TOTAL $48.20"),
        (EUROS, "48.21 EUR"),
        (EUROS, "-48.20 EUR"),
        (EUROS, "4820 EUR"),
        (Money(minor=123400, currency="EUR"), "1,234 EUR"),
        (Money(minor=123, currency="EUR"), "1.234 EUR"),
        (Money(minor=4820, currency="USD"), "$48.20"),
        (48, "148"),
        (48, "48.5"),
        (48, "480"),
        (1234, "1.234"),
        (True, "True 1"),
        (date(2018, 3, 4), "03/04/2018"),
        (datetime(2018, 3, 25, tzinfo=UTC), "2018-03-25"),
        ("Ann", "Anna"),
        ("Ann", "Joann"),
        ("12", "4512"),
        ("", "anything"),
        (" ", "any thing"),
        ("e\u0301", "\u00e9"),
        (None, "None"),
        ({"a": 1}, "a 1"),
        (["Ann", "Bob"], "Ann"),
        ([], "nothing"),
    ],
)
def test_values_that_a_quote_does_not_show(value: Any, text: str) -> None:
    """Another value, an ambiguous form, a part of a word or a type without a reading shows nothing."""
    assert shown(value, text) is None


@pytest.mark.parametrize(
    ("value", "text", "quote"),
    [
        (EUROS, "TOTAL 148.20 EUR", "48.20 EUR"),
        (48, "1480", "48"),
        ("Ann", "Hannah and Annabel", "ann"),
        ("Ann", "Annabel", "Ann"),
        (date(2018, 3, 5), "25/03/2018", "5/03/2018"),
        (EUROS, "48.20 EUR or 48.20 EUR", "48.2"),
    ],
)
def test_a_quote_cut_out_of_something_longer_shows_nothing(value: Any, text: str, quote: str) -> None:
    """The surroundings of a quote in its source count."""
    assert shown(value, text, quote) is None


def test_one_good_place_of_a_repeated_quote_is_enough() -> None:
    """A quote that stands once inside a longer number and once alone shows the value by the latter."""
    assert shown(48, "148 and 48", "48") is Trust.PRINCIPAL


def test_a_currency_stated_elsewhere_completes_an_amount() -> None:
    """A field or another quote may name the currency; the weaker of both sources counts."""
    assert shown(EUROS, "TOTAL 48.20", stated={"EUR": Trust.RECORD}) is Trust.PRINCIPAL
    assert shown(EUROS, "TOTAL 48.20", stated={"USD": Trust.RECORD}) is None
    assert shown(EUROS, "TOTAL 48.20 USD", stated={"EUR": Trust.RECORD}) is None
    amount = find_quote(Evidence("p", "a", "48.20"), Source("48.20", Trust.PRINCIPAL))
    currency = find_quote(Evidence("p", "b", "all prices in EUR"), Source("all prices in EUR", Trust.UNTRUSTED))
    assert amount is not None
    assert currency is not None
    assert support(EUROS, [amount, currency], lambda _: None) is Trust.UNTRUSTED


def test_the_strongest_source_that_shows_a_value_counts() -> None:
    """A value shown by a record and by third-party text rests on the record."""
    quotes = [find_quote(Evidence("p", trust, "48"), Source("48", trust)) for trust in Trust]
    assert support(48, [quote for quote in quotes if quote is not None], lambda _: None) is Trust.RECORD


def test_trust_is_ordered() -> None:
    """Record over principal over untrusted, and nothing is no support."""
    assert weaker(Trust.RECORD, Trust.PRINCIPAL) is Trust.PRINCIPAL
    assert weaker(Trust.UNTRUSTED, Trust.PRINCIPAL) is Trust.UNTRUSTED
    assert stronger(Trust.UNTRUSTED, Trust.PRINCIPAL) is Trust.PRINCIPAL
    assert stronger(None, Trust.UNTRUSTED) is Trust.UNTRUSTED
    assert stronger(Trust.RECORD, None) is Trust.RECORD


def test_sources_have_a_text() -> None:
    """Text stays as it is, money is written as people do, anything else as JSON; a record has a line for each field."""
    assert source_text("a\0\ud800") == "a\0\ud800"
    assert source_text(EUROS) == "48.20 EUR"
    assert source_text({"a": [1, None]}) == '{"a":[1,null]}'
    record = Record("orders", "A-17", {"customer": "C-1", "total": EUROS, "day": date(2026, 3, 1)})
    assert record_source(record).text == 'customer: C-1\ntotal: {"minor":4820,"currency":"EUR"}\nday: 2026-03-01'


@given(
    st.none() | st.booleans() | st.integers() | st.floats() | st.decimals() | st.text(st.characters()) | st.dates(),
    st.text(st.characters(), min_size=1),
)
def test_no_value_and_no_text_make_it_raise(value: Any, text: str) -> None:
    """Whatever the value and the text, the answer is a trust or None."""
    assert shown(value, text) in {None, Trust.PRINCIPAL}


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(lambda text: text.strip() == text))
def test_a_text_shows_itself(text: str) -> None:
    """A value quoted whole is shown, whatever its characters."""
    assert shown(text, text) is Trust.PRINCIPAL
