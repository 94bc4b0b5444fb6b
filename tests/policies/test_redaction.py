"""Text made safe to store and to show."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.redaction import UNSTORABLE, clipped, visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Grüße, 東京 🙂\n\tok", "Grüße, 東京 🙂\n\tok"),
        ("a\0b", "a\\u0000b"),
        ("pay\u202e05.84", "pay\\u202e05.84"),
        ("\u2066x\u2069", "\\u2066x\\u2069"),
        ("zero\u200bwidth\ufeff", "zero\\u200bwidth\\ufeff"),
        ("lone \ud800", "lone \\ud800"),
        ("\r\x1b[31m", "\\u000d\\u001b[31m"),
        ("tag \U000e0041", "tag \\U000e0041"),
    ],
)
def test_hidden_characters_become_escapes(text: str, shown: str) -> None:
    """Control, bidirectional, invisible characters and lone surrogates are written out; ordinary text stays."""
    assert visible(text) == shown


@given(st.text(st.characters()))
def test_visible_text_can_be_stored(text: str) -> None:
    """Whatever came in, the result encodes to UTF-8 and holds no NUL, and a second pass changes nothing."""
    shown = visible(text)
    shown.encode()
    assert not UNSTORABLE.search(shown)
    assert visible(shown) == shown


@given(st.text(st.characters()), st.integers(1, 50))
def test_clipped_text_keeps_its_length(text: str, length: int) -> None:
    """A clipped text is never longer than asked for and says so where something is missing."""
    shown = clipped(text, length)
    assert len(shown) <= length
    assert shown == visible(text) or shown.endswith("…")
