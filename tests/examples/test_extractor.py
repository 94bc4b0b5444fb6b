"""Merchant, date, currency, and what holds for every text whatever it says."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples.expenses.extractor import read
from examples.expenses.lines import MAX_LINE, MAX_LINES
from examples.expenses.reading import Reading

PAID = "TOTAL RM 48.20\nCASH RM 50.00\nCHANGE RM 1.80"
PIECES = st.sampled_from(
    ["TOTAL", "GST", "CASH", "CHANGE", "ROUNDING", "SUBTOTAL", "RM", " ", "  ", "\n", ".", ",", "-", "12.50", "0.02",
     "9", "\r", "03/11/2026", "3 NOV 26", "DATE", "SDN BHD", "(", "LTD", "$", "€", "\0", "\ud800", "\u202e", "é"]
)  # fmt: skip
TEXTS = st.lists(PIECES, max_size=60).map("".join) | st.text(max_size=300)


def quotes(reading: Reading) -> list[str]:
    """The quotes of the fields that are stated."""
    found = (reading.merchant, reading.date, reading.total, reading.currency)
    return [field.quote for field in found if field is not None]


@given(TEXTS)
def test_no_text_makes_it_raise_and_every_quote_stands_in_the_text(text: str) -> None:
    """Whatever is scanned, the reading is there, and what it quotes can be found again."""
    assert all(quote and quote in text for quote in quotes(read(text)))


@given(TEXTS)
def test_the_same_text_gives_the_same_reading(text: str) -> None:
    """A reading is a function of the text."""
    assert read(text) == read(text)


@given(TEXTS)
def test_no_quote_holds_a_character_that_a_reader_would_not_see(text: str) -> None:
    """Controls and marks of direction make a field unsure, so it is left open."""
    assert not set("".join(quotes(read(text)))) & {"\0", "\ud800", "\u202e"}


def test_a_quote_is_right_behind_an_overlong_line() -> None:
    """Lines that are not read still count for where the others stand."""
    text = f"TOKO CONTOH SDN BHD\n{'X' * (MAX_LINE + 1)}\n{PAID}"
    field = read(text).total
    assert field is not None
    assert field.quote == "TOTAL RM 48.20"


def test_what_lies_beyond_the_readable_part_is_not_read() -> None:
    """Reading stays quick whatever is handed in."""
    assert read("\n" * MAX_LINES + PAID).total is None
    assert read(f"{'TOTAL RM 48.20 ' * 50}\nCASH RM 50.00\nCHANGE RM 1.80").total is None


@pytest.mark.parametrize(
    ("printed", "day"),
    [
        ("DATE: 03/11/2026", date(2026, 11, 3)),
        ("3-11-26 14:05", date(2026, 11, 3)),
        ("03.11.2026", date(2026, 11, 3)),
        ("2026-11-03", date(2026, 11, 3)),
        ("03 NOV 2026 18:24", date(2026, 11, 3)),
        ("03-NOV-2026", date(2026, 11, 3)),
        ("Nov 3, 2026", date(2026, 11, 3)),
        ("20261103", date(2026, 11, 3)),
        ("DATE : 11/23/2026", date(2026, 11, 23)),
    ],
)
def test_dates_are_read_in_the_usual_notations(printed: str, day: date) -> None:
    """Day first, unless only month first makes a day of it."""
    field = read(f"TOKO CONTOH\n{printed}\n{PAID}").date
    assert field is not None
    assert field.value == day


@pytest.mark.parametrize(
    "printed", ["31/02/2026", "45/11/2026", "10.20.30.40", "WA12-11/24", "I9-10-2026", "TEL 03-11-26-77"]
)
def test_what_is_no_day_is_no_date(printed: str) -> None:
    """Item codes, numbers and impossible days are not dates."""
    assert read(f"TOKO CONTOH\n{printed}\n{PAID}").date is None


def test_the_labelled_date_wins_over_others() -> None:
    """A closing time after midnight or a printing date is not the day of the sale."""
    field = read("TOKO CONTOH\nPRINTED 05/11/2026\nDATE 03/11/2026\nCLOSED 04/11/2026").date
    assert field is not None
    assert field.value == date(2026, 11, 3)


@pytest.mark.parametrize("other", ["VALID UNTIL 05/12/2026", "PRINTED 04/11/2026", "EXPIRY DATE 05/12/2026"])
def test_a_date_of_something_else_does_not_compete(other: str) -> None:
    """A voucher's last day says nothing about the sale, labelled as a date or not."""
    field = read(f"TOKO CONTOH\n{other}\n03/11/2026").date
    assert field is not None
    assert field.value == date(2026, 11, 3)


def test_two_dates_that_compete_are_left_open() -> None:
    """Without a label or a majority nobody knows which day it was."""
    assert read("TOKO CONTOH\n03/11/2026\n05/11/2026").date is None


@pytest.mark.parametrize(
    ("head", "name"),
    [
        ("TOKO CONTOH SDN BHD (123456-W)\nNO 3, JALAN SATU", "TOKO CONTOH SDN BHD"),
        ("CONTOH CAFE\nTOKO CONTOH SDN. BHD.\n(123456-W)", "TOKO CONTOH SDN. BHD."),
        ("TOKO CONTOH\nSDN BHD\nLOT 4", "TOKO CONTOH SDN BHD"),
        ("TOKO CONTOH\nENTERPRISE (CABANG\nTIMUR) SDN BHD\n123456-X", "TOKO CONTOH ENTERPRISE (CABANG TIMUR) SDN BHD"),
        ("OWNED BY: TOKO CONTOH S/B\n(123456-W)", "TOKO CONTOH S/B"),
        ("WELCOME\n0042\nKEDAI CONTOH\nNO 3, JALAN SATU", "KEDAI CONTOH"),
        ("KEDAI ALAT TULIS &\nCONTOH\nNO 3, JALAN SATU", "KEDAI ALAT TULIS & CONTOH"),
    ],
)
def test_the_merchant_is_the_legal_name_or_else_the_only_head_line(head: str, name: str) -> None:
    """Shops print slogans, numbers and brands around the name that counts."""
    field = read(f"{head}\n{PAID}").merchant
    assert field is not None
    assert field.value == name


def test_a_head_of_several_lines_without_a_legal_name_is_left_open() -> None:
    """Shop, branch or motto: nobody can tell which line is the merchant."""
    assert read(f"KEDAI CONTOH\nCABANG TIMUR\nNO 3, JALAN SATU\n{PAID}").merchant is None


@pytest.mark.parametrize(
    ("printed", "code"),
    [("RM 48.20", "MYR"), ("48.20 EUR", "EUR"), ("€48.20", "EUR"), ("S$48.20", "SGD"), ("US$48.20", "USD")],
)
def test_a_currency_is_read_where_its_mark_names_one(printed: str, code: str) -> None:
    """Codes and unambiguous signs."""
    field = read(f"TOKO CONTOH\nTOTAL {printed}").currency
    assert field is not None
    assert field.value == code


@pytest.mark.parametrize("text", ["TOTAL $48.20", "TOTAL 48.20", "TOTAL RM 48.20\nPAID 10.30 EUR", "FARM 48.20"])
def test_a_currency_that_is_not_certain_is_left_open(text: str) -> None:
    """A bare dollar sign, no mark, or two currencies."""
    assert read(f"TOKO CONTOH\n{text}").currency is None
