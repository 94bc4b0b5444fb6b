"""Adding to a payload: what was there stays as it is written, and what is added is exactly what was given."""

from __future__ import annotations

import copy
import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict

from policies.errors import RequestRefused
from policies.inputs import amended, field_names, reads_the_same

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


class Part(BaseModel):
    """What a request may nest."""

    model_config = ConfigDict(extra="allow")

    weight: Any


READ = VALUES | st.none() | st.decimals(allow_nan=False) | st.builds(Part, weight=VALUES, more=VALUES)


@given(one=READ, other=READ)
def test_without_nan_values_read_the_same_that_are_equal(one: Any, other: Any) -> None:
    """Python's word counts, whatever they hold."""
    assert reads_the_same(one, copy.deepcopy(one))
    assert reads_the_same(one, other) == (one == other)


@pytest.mark.parametrize("nan", [float("nan"), Decimal("nan")])
def test_nan_reads_as_nan_wherever_it_stands(nan: float | Decimal) -> None:
    """And as nothing else."""

    def values(number: float | Decimal) -> list[Any]:
        part = Part(weight=number)
        return [
            number,
            [number],
            (1, number),
            {"a": number},
            part,
            Part.model_validate({"weight": 1, "more": number}),
            {"a": [part]},
        ]

    assert reads_the_same(values(nan), values(copy.deepcopy(nan)))
    assert not any(map(reads_the_same, values(nan), values(type(nan)(1))))
    assert not any(map(reads_the_same, values(type(nan)(1)), values(nan)))
