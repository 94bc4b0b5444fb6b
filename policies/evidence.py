"""Evidence is checked, not believed: quotes must stand in their source and must show the value they are given for.

A quote stands in a source only verbatim: no folding of white space, case or Unicode form. It shows a value where the
value can be read from it in one way:

- text: the value stands in the quote, whole words, ignoring case only;
- numbers and money: see `quoted_numbers`; the amount must be the same to the minor unit. The currency must be named
  beside the amount, in another quote for the same parameter, or be the whole value of a request field that the
  principal gave or of a field of a resolved record; a currency named beside the amount that is not the proposed one
  makes the quote worthless;
- dates: see `quoted_dates`;
- lists: every item. Nothing else can be shown by a quote; put it into parameters of these types.

That a quote shows a value is necessary, not sufficient: "Order 48" shows the number 48. Policy and people judge what it
means.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from typing import Any, TypeAlias

from pydantic_core import to_jsonable_python

from policies.actions import Trust
from policies.currencies import currencies_named
from policies.money import Money, minor_digits
from policies.proposals import Evidence
from policies.quoted_dates import dates_in
from policies.quoted_numbers import numbers_in
from policies.records import Record, field_value

_RANK = {Trust.UNTRUSTED: 0, Trust.PRINCIPAL: 1, Trust.RECORD: 2}
_MAX_PLACES = 50
"""Places of one quote that are looked at: a quote that stands more often than this says nothing particular."""


def weaker(one: Trust, other: Trust) -> Trust:
    """The trust that is left where both are needed: record over principal over untrusted."""
    return one if _RANK[one] <= _RANK[other] else other


def stronger(one: Trust | None, other: Trust | None) -> Trust | None:
    """The trust there is where either is enough; None is no support at all."""
    if one is None or other is None:
        return other if one is None else one
    return one if _RANK[one] >= _RANK[other] else other


CurrencyTrust: TypeAlias = Callable[[str], Trust | None]


@dataclass(frozen=True, slots=True)
class Source:
    """A text that may be quoted, and how far it may be believed."""

    text: str
    trust: Trust


def source_text(value: Any) -> str:
    """The text of a request field: text as it is, money as `48.20 EUR`, anything else as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, Money):
        return str(value)
    # Not pydantic's own JSON text: it refuses a lone surrogate, which a document may hold.
    return json.dumps(value, default=to_jsonable_python, ensure_ascii=False, separators=(",", ":"))


def leaves(value: Any) -> Iterator[Any]:
    """Every scalar within a JSON value."""
    if isinstance(value, dict):
        for item in value.values():
            yield from leaves(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from leaves(item)
    else:
        yield value


def record_source(record: Record) -> Source:
    """A record as a source: one line `field: value` for each of its fields, in their order."""
    lines = (f"{name}: {source_text(field_value(record, name))}" for name in record.fields)
    return Source("\n".join(lines), Trust.RECORD)


@dataclass(frozen=True, slots=True)
class Quote:
    """Evidence that stands in its source, at `places` there."""

    evidence: Evidence
    source: Source
    places: tuple[int, ...]


def find_quote(evidence: Evidence, source: Source) -> Quote | None:
    """The quote with the places where it stands verbatim in the source; None where it does not."""
    place = source.text.find(evidence.quote)
    if place < 0 or not evidence.quote:
        return None
    places: list[int] = []
    while place >= 0 and len(places) < _MAX_PLACES:
        places.append(place)
        place = source.text.find(evidence.quote, place + 1)
    return Quote(evidence, source, tuple(places))


def support(value: Any, quotes: Iterable[Quote], currency_trust: CurrencyTrust) -> Trust | None:
    """How far the value may be believed by the quotes given for it; None: no quote shows it.

    `currency_trust` says how far a currency code may be believed because a trusted field states it.
    """
    found = tuple(quotes)
    if isinstance(value, list | tuple | set | frozenset):
        trusts = [support(item, found, currency_trust) for item in value]
        known = [trust for trust in trusts if trust is not None]
        if not known or len(known) < len(trusts):
            return None
        return min(known, key=_RANK.__getitem__)
    best: Trust | None = None
    for quote in found:
        if isinstance(value, Money):
            best = stronger(best, _money_support(value, quote, found, currency_trust))
        elif any(_shows(value, quote, place) for place in quote.places):
            best = stronger(best, quote.source.trust)
    return best


def _shows(value: Any, quote: Quote, start: int) -> bool:
    text, end = quote.source.text, start + len(quote.evidence.quote)
    if isinstance(value, Enum):
        value = value.value
    if isinstance(value, str):
        return _shows_text(value, text, start, end)
    if isinstance(value, bool | datetime):
        return False
    if isinstance(value, date):
        return value in dates_in(text, start, end)
    if isinstance(value, int | float | Decimal):
        exact = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
        return exact.is_finite() and any(number.value() == exact for number in numbers_in(text, start, end))
    return False


def _shows_text(value: str, text: str, start: int, end: int) -> bool:
    wanted, quote = value.casefold(), text[start:end].casefold()
    if not wanted.strip():
        return False
    place = quote.find(wanted)
    while place >= 0:
        after = place + len(wanted)
        left = quote[place - 1] if place else text[start - 1 : start]
        right = quote[after] if after < len(quote) else text[end : end + 1]
        if not _continues(left, wanted[0]) and not _continues(wanted[-1], right):
            return True
        place = quote.find(wanted, place + 1)
    return False


def _continues(left: str, right: str) -> bool:
    """Whether two neighbouring characters are of one word or number; scripts without case do not mark words so."""
    return _is_word(left) and _is_word(right)


def _is_word(character: str) -> bool:
    return character.isdigit() or character == "_" or character.lower() != character.upper()


def _money_support(
    value: Money, quote: Quote, quotes: tuple[Quote, ...], currency_trust: CurrencyTrust
) -> Trust | None:
    best: Trust | None = None
    for place in quote.places:
        for named in _amounts(value, quote, place):
            if named is not None and value.currency not in named:
                continue
            if named is not None and len(named) == 1:
                best = stronger(best, quote.source.trust)
                continue
            currency = currency_trust(value.currency)
            for other in quotes:
                if _names_currency(other.evidence.quote, value.currency):
                    currency = stronger(currency, other.source.trust)
            if currency is not None:
                best = stronger(best, weaker(quote.source.trust, currency))
    return best


def _amounts(value: Money, quote: Quote, start: int) -> Iterator[frozenset[str] | None]:
    """For every place in the quote that reads as this amount, the currencies named beside it."""
    digits = minor_digits(value.currency)
    for number in numbers_in(quote.source.text, start, start + len(quote.evidence.quote)):
        amount = number.value(digits)
        if amount is not None and amount.scaleb(digits) == value.minor:
            yield number.currencies


def _names_currency(quote: str, currency: str) -> bool:
    return any(currencies_named(word) == {currency} for word in _WORDS.findall(quote))


_WORDS = re.compile(r"[A-Za-złč]*[$€£¥₹₩₺₫฿₱₪]|[A-Za-złč]+")
