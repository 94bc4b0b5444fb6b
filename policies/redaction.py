"""Text made safe to store and to show: nothing in it may hide, reorder or break what surrounds it."""

from __future__ import annotations

import re
from typing import Final

UNSTORABLE: Final = re.compile("[\x00\ud800-\udfff]")
"""What Postgres text or UTF-8 cannot hold: NUL and lone surrogates."""

_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters but tab and line feed; Postgres text refuses NUL
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"  # invisible fillers and joiners
    "\u200b-\u200f\u2028-\u202f\u205f-\u206f"  # zero width, bidirectional overrides and isolates, line separators
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb"
    "\ud800-\udfff"  # lone surrogates have no UTF-8
    "\U000e0000-\U000e0fff]"  # tags: text that a model reads and a person does not see
)


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def visible(text: str) -> str:
    """`text` with control, bidirectional and invisible characters and lone surrogates written as escapes."""
    return _HIDDEN.sub(_escape, text)


def clipped(text: str, length: int) -> str:
    """`text` made visible, cut to `length` characters with an ellipsis where something is missing."""
    shown = visible(text[: length + 1])
    return shown if len(shown) <= length else shown[: length - 1] + "…"
