"""Numbers and dates read from texts in one way or not at all."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.quoted_dates import dates_in
from policies.quoted_numbers import numbers_in


def values(text: str, minor_digits: int | None = 2) -> list[str]:
    """The values that the whole text shows, as texts."""
    found = (number.value(minor_digits) for number in numbers_in(text, 0, len(text)))
    return [str(value) for value in found if value is not None]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("48.20", ["48.20"]),
        ("48,20", ["48.20"]),
        ("48.2", ["48.2"]),
        ("48", ["48"]),
        ("0.50", ["0.50"]),
        ("0.500", ["0.500"]),
        ("1,234.50", ["1234.50"]),
        ("1.234,50", ["1234.50"]),
        ("1'234.50", ["1234.50"]),
        ("1\u2019234.50", ["1234.50"]),
        ("1'234", ["1234"]),
        ("1,234,567", ["1234567"]),
        ("1.234.567,89", ["1234567.89"]),
        ("12345.678", ["12345.678"]),
        ("RM48.20", ["48.20"]),
        ("EUR 48.20", ["48.20"]),
        ("48.20EUR", ["48.20"]),
        ("TOTAL: 48.20.", ["48.20"]),
        ("TOTAL (RM) 48.20", ["48.20"]),
        ("48,-", ["48"]),
        ("-48.20", ["-48.20"]),
        ("-RM48.20", ["-48.20"]),
        ("RM-48.20", ["-48.20"]),
        ("\u221248.20", ["-48.20"]),
        ("48.20-", ["-48.20"]),
        ("48.20, 50.00", ["48.20", "50.00"]),
        ("48.20 100.00", ["48.20", "100.00"]),
        ("1234 567", ["1234", "567"]),
    ],
)
def test_forms_with_one_reading(text: str, expected: list[str]) -> None:
    """Each accepted form is read as the number it can only mean."""
    assert values(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "1.234",
        "1,234",
        "12.345",
        "1.234,567.8",
        "12,34,567",
        "1,23.456",
        "0048",
        "007.50",
        ".50",
        "1 234",
        "1 234,50",
        "1\u202f234,50",
        "48. 20",
        "48 .20",
        "2018-03-25",
        "25/03/2018",
        "25.03.2018",
        "10:45",
        "10-20",
        "3/4",
        "20%",
        "20 %",
        "INV48",
        "48kg",
        "x48",
        "ARM48",
        "(48.20)",
        "TOTAL-48.20",
        "TOTAL-RM48.20",
        "due - RM48.20",
        "- 48.20",
        "\u0664\u0668",
        "1" * 25,
        "one",
        "",
    ],
)
def test_forms_with_none_or_two_readings(text: str) -> None:
    """What is ambiguous, a part of something longer, or no amount counts for nothing."""
    assert values(text) == []


@pytest.mark.parametrize(
    ("text", "minor_digits", "expected"),
    [("1,234", 0, ["1234"]), ("1.234", 3, ["1.234"]), ("1.234", None, []), ("12,345.678", 3, ["12345.678"])],
)
def test_the_minor_unit_settles_three_digits(text: str, minor_digits: int | None, expected: list[str]) -> None:
    """Yen have no decimals and dinars have three, so there one reading is left."""
    assert values(text, minor_digits) == expected


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [("148.20", 1, 6), ("48.205", 0, 5), ("1,048.20", 2, 8), ("48.20", 0, 4), ("48.20", 3, 5), ("EUR48.20", 3, 6)],
)
def test_a_quote_that_cuts_a_number_shows_nothing(text: str, start: int, end: int) -> None:
    """The digits around a quote count: 48.20 cut out of 148.20 is no 48.20."""
    assert not list(numbers_in(text, start, end))


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("48.20", None),
        ("48.20 EUR", {"EUR"}),
        ("\u20ac48.20", {"EUR"}),
        ("USD 48.20", {"USD"}),
        ("US$48.20", {"USD"}),
        ("RM 48.20", {"MYR"}),
        ("USD 48.20 EUR", set()),
        ("48.20 EURO", None),
    ],
)
def test_the_currency_beside_an_amount(text: str, named: set[str] | None) -> None:
    """A code or symbol right beside the amount names its currency; two that disagree name none."""
    (number,) = numbers_in(text, 0, len(text))
    assert number.currencies == named


def test_a_dollar_sign_is_many_currencies() -> None:
    """A bare dollar sign contradicts the euro and does not prove the US dollar."""
    (number,) = numbers_in("$48.20", 0, 6)
    assert number.currencies is not None
    assert {"USD", "SGD"} <= number.currencies
    assert "EUR" not in number.currencies


@given(st.integers(0, 10**11), st.sampled_from(["{:,.2f}", "{:.2f}"]), st.sampled_from(["", "RM", "TOTAL "]))
def test_written_amounts_are_read_back(cents: int, form: str, before: str) -> None:
    """Any amount in the usual forms reads as itself and as nothing else."""
    amount = Decimal(cents).scaleb(-2)
    assert values(before + form.format(amount)) == [f"{amount:.2f}"]
    german = form.format(amount).translate(str.maketrans(",.", ".,"))
    assert values(german) == [f"{amount:.2f}"]


@given(st.text(st.sampled_from("0123456789.,'- ()%/:EURM$\u20ac\nx"), max_size=30), st.data())
def test_every_text_is_read_or_not(text: str, data: st.DataObject) -> None:
    """No text makes reading raise, and every number found stands within the quote."""
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    for number in numbers_in(text, start, end):
        assert number.text in text[start:end]
        number.value(2)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2018-03-25", date(2018, 3, 25)),
        ("2018-03-25T10:00:00", date(2018, 3, 25)),
        ("2018/3/5", date(2018, 3, 5)),
        ("25/03/2018", date(2018, 3, 25)),
        ("25-3-18", date(2018, 3, 25)),
        ("25.03.2018.", date(2018, 3, 25)),
        ("04/05/2018", date(2018, 5, 4)),
        ("25 MAR 2018", date(2018, 3, 25)),
        ("25-Mar-18", date(2018, 3, 25)),
        ("25MAR2018", date(2018, 3, 25)),
        ("25th March, 2018", date(2018, 3, 25)),
        ("March 25, 2018", date(2018, 3, 25)),
        ("Date: 25/03/2018 10:12 AM", date(2018, 3, 25)),
    ],
)
def test_dates_in_declared_forms(text: str, expected: date) -> None:
    """Year first, day first and English month names are read."""
    assert set(dates_in(text, 0, len(text))) == {expected}


@pytest.mark.parametrize(
    "text",
    [
        "03/25/2018",
        "31/02/2018",
        "25/03-2018",
        "25032018",
        "1.25.03.2018",
        "25/03/20181",
        "March 2018",
        "12 May 18:30",
        "",
    ],
)
def test_what_is_no_date_in_a_declared_form(text: str) -> None:
    """Month first, impossible days, mixed marks and parts of longer numbers are not dates."""
    assert not set(dates_in(text, 0, len(text)))


@pytest.mark.parametrize(("start", "end"), [(0, 9), (1, 10)])
def test_a_quote_that_cuts_a_date_shows_nothing(start: int, end: int) -> None:
    """5/03/2018 cut out of 25/03/2018 is no date, nor is 25/03/201."""
    assert not set(dates_in("25/03/2018", start, end))
