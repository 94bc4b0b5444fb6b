"""Adding to a payload: what was there stays as it is written, and what is added is exactly what was given."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.errors import RequestRefused
from policies.inputs import amended, field_names

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"))
VALUES = st.recursive(
    st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner | st.none()) | st.dictionaries(TEXT, inner | st.none()),
)
OBJECTS = st.dictionaries(TEXT, VALUES | st.none(), max_size=6)


@given(payload=OBJECTS, fields=st.dictionaries(TEXT, VALUES, min_size=1, max_size=6), space=st.sampled_from([None, 1]))
def test_input_only_adds(payload: dict[str, Any], fields: dict[str, Any], space: int | None) -> None:
    """Either a field had a value and the refusal names one, or the result is both objects together."""
    had = {name for name in fields if payload.get(name) is not None}
    written = json.dumps(payload, indent=space).encode(), json.dumps(fields, indent=space, ensure_ascii=False).encode()
    if had:
        with pytest.raises(RequestRefused) as refused:
            amended(*written)
        assert any(str(refused.value).startswith(f"{name} has a value already") for name in had)
        return
    assert json.loads(amended(*written)) == payload | fields
    assert field_names(written[1]) == tuple(sorted(fields))


@pytest.mark.parametrize("number", ["1.10", "1e2", "-0.0", "0.30000000000000000004", "123456789012345678901234567890"])
def test_a_number_stays_as_it_is_written(number: str) -> None:
    """In what was there and in what is added."""
    payload, fields = f'{{"was": {number}}}'.encode(), f'{{"is":{number}}}'.encode()
    assert amended(payload, fields) == f'{{"was": {number}, "is": {number}}}'.encode()


@pytest.mark.parametrize(
    ("text", "taken"),
    [
        (r'"\u0000"', False),
        (r'"a\\\u0000"', False),
        (r'["\u0000"]', False),
        (r'"\\u0000"', True),
        (r'"\\\\u0000"', True),
    ],
)
def test_a_nul_is_seen_however_it_is_written(text: str, *, taken: bool) -> None:
    """A backslash before a backslash makes plain text of what follows."""
    fields = f'{{"note": {text}}}'.encode()
    if taken:
        assert json.loads(amended(b"{}", fields)) == json.loads(fields)
        return
    with pytest.raises(RequestRefused, match="note holds a NUL"):
        amended(b"{}", fields)
