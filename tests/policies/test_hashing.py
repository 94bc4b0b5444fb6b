"""Canonical bytes and hashes."""

from __future__ import annotations

import json
import math
import unicodedata
from typing import Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from policies.errors import CanonicalFormError
from policies.hashing import PARAMETERS, PROPOSAL, canonical_bytes, domain_hash, payload_fingerprint
from policies.money import MAX_EXACT_INTEGER

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
NUMBERS = st.integers(-MAX_EXACT_INTEGER, MAX_EXACT_INTEGER) | st.floats(-1e15, 1e15, allow_nan=False)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


@given(VALUES)
def test_canonical_bytes_are_rfc_8785(value: Any) -> None:
    """The fast way and the reference implementation write the same bytes."""
    assert canonical_bytes(value) == rfc8785.dumps(value)


@given(VALUES)
def test_canonical_bytes_read_back_to_the_same_bytes(value: Any) -> None:
    """What canonical bytes say can be read and written again without a change."""
    data = canonical_bytes(value)
    assert canonical_bytes(json.loads(data)) == data


@given(st.dictionaries(TEXT, VALUES, min_size=2, max_size=6), st.randoms(use_true_random=False))
def test_key_order_makes_no_difference(value: dict[str, Any], random: Any) -> None:
    """Two dictionaries that differ only in the order of their keys have the same bytes."""
    items = list(value.items())
    random.shuffle(items)
    assert canonical_bytes(dict(items)) == canonical_bytes(value)


def test_keys_sort_by_utf_16_code_units() -> None:
    """A key beyond the basic plane sorts before U+E000, as RFC 8785 says and code points do not."""
    assert canonical_bytes({"\ue000": 1, "\U0001f600": 2}) == '{"\U0001f600":2,"\ue000":1}'.encode()


def test_the_appendix_of_rfc_8785() -> None:
    """The example of RFC 8785 section 3.2.2 has the bytes printed there."""
    value: dict[str, Any] = {
        "numbers": [333333333.33333329, 1e15, 4.50, 2e-3, 0.000000000000000000000000001],
        "string": "\u20ac$\u000f\u000aA'\u0042\u0022\u005c\\\"/",
        "literals": [None, True, False],
    }
    expected = (
        '{"literals":[null,true,false],"numbers":[333333333.3333333,1000000000000000,4.5,0.002,1e-27],'
        '"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}'
    )
    assert canonical_bytes(value) == expected.encode()


@given(TEXT)
def test_unicode_forms_are_kept_apart(text: str) -> None:
    """Text is not normalised: its composed and decomposed forms are equal only where they are the same characters."""
    composed, decomposed = unicodedata.normalize("NFC", text), unicodedata.normalize("NFD", text)
    assert (canonical_bytes(composed) == canonical_bytes(decomposed)) == (composed == decomposed)


def test_a_composed_and_a_decomposed_letter_differ() -> None:
    """One é is not two characters that look like it."""
    assert canonical_bytes("\u00e9") != canonical_bytes("e\u0301")


@given(
    st.sampled_from([math.nan, math.inf, -math.inf])
    | st.integers(min_value=MAX_EXACT_INTEGER + 1)
    | st.integers(max_value=-MAX_EXACT_INTEGER - 1)
    | st.floats(min_value=2.0**53, allow_infinity=False)
    | st.floats(max_value=-(2.0**53), allow_infinity=False)
    | st.characters(categories=["Cs"])
)
def test_values_without_canonical_form_raise(value: Any) -> None:
    """NaN, infinities, numbers beyond 2^53 and lone surrogates raise, wherever they stand."""
    for document in (value, [1.5, value], {"a": {"b": value}}, {"é": [value]}):
        with pytest.raises(CanonicalFormError):
            canonical_bytes(document)


@pytest.mark.parametrize("value", [{1: "a"}, {None: 1}, {"\ud800": 1}, {"é": 1, "\udfff": 2}, b"a", {"a": {1, 2}}, 1j])
def test_what_json_does_not_have_raises(value: Any) -> None:
    """Keys that are not text, lone surrogates in keys and foreign types raise."""
    with pytest.raises(CanonicalFormError):
        canonical_bytes(value)


def test_endless_nesting_raises() -> None:
    """A value too deep to walk raises our error, not the interpreter's."""
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(CanonicalFormError):
        canonical_bytes(deep)


def test_nul_survives_as_an_escape() -> None:
    """A NUL has a canonical form."""
    assert canonical_bytes("a\0b") == b'"a\\u0000b"'


@given(st.binary())
def test_a_hash_belongs_to_its_domain(data: bytes) -> None:
    """The same bytes have different hashes for different purposes, each of 32 bytes."""
    assert domain_hash(PROPOSAL, data) != domain_hash(PARAMETERS, data)
    assert len(domain_hash(PROPOSAL, data)) == 32


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (b'{"a":1,"b":2}', b'{ "b": 2.0,\n "a": 1e0 }'),
        (b'{"a":"\\u00e9"}', '{"a":"é"}'.encode()),
        (b"[0]", b"[-0.0]"),
    ],
)
def test_payloads_of_one_meaning_have_one_fingerprint(one: bytes, other: bytes) -> None:
    """Key order, white space, escapes and the writing of numbers make no difference."""
    assert payload_fingerprint(one) == payload_fingerprint(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [(b'{"a":1}', b'{"a":"1"}'), (b"[1,2]", b"[2,1]"), (b'"\xc3\xa9"', b'"e\xcc\x81"'), (b"1", b"true")],
)
def test_payloads_of_different_meaning_differ(one: bytes, other: bytes) -> None:
    """Types, order of lists and Unicode forms make a difference."""
    assert payload_fingerprint(one) != payload_fingerprint(other)


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"{",
        b"\xff",
        b'{"a":NaN}',
        b'{"a":1,"a":2}',
        b'"\\ud800"',
        b"9007199254740993",
        b"[" * 100_000,
        b"1" * 5_000,
    ],
)
def test_payloads_without_a_fingerprint_raise(payload: bytes) -> None:
    """What is not JSON, or JSON that readers would take differently, raises."""
    with pytest.raises(CanonicalFormError):
        payload_fingerprint(payload)
