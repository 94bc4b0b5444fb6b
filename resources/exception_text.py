"""The words of somebody else's exception."""

from __future__ import annotations


def exception_text(error: Exception) -> str:
    """Class and text of `error`; the class alone where its text is empty or cannot be made."""
    try:
        text = str(error)
    except Exception:  # noqa: BLE001  # foreign code; what is lost is a reason, never an outcome
        text = ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
