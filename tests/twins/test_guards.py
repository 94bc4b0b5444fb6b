"""The twins follow the code: each change still applies, and each test that must notice is still there."""

from __future__ import annotations

import re

import pytest

from tests.twins.__main__ import ROOT, TwinError, applied
from tests.twins.guards import TWINS, Change, Twin


@pytest.mark.parametrize("twin", TWINS, ids=lambda twin: twin.guard)
def test_a_twin_still_applies_to_the_code(twin: Twin) -> None:
    """The text that it replaces stands there once, and the named test exists."""
    for change in twin.changes:
        text = (ROOT / change.file).read_text()
        assert applied(change, text) != text
    file, _, name = twin.test.partition("::")
    assert re.search(rf"^def {name}\(", (ROOT / file).read_text(), re.MULTILINE)


def test_a_change_that_no_longer_applies_is_an_error() -> None:
    """A twin of code that is gone proves nothing."""
    change = Change("a.py", "guard()", "pass")
    assert applied(change, "guard()\n") == "pass\n"
    for text in ("nothing", "guard() guard()"):
        with pytest.raises(TwinError, match="write the twin anew"):
            applied(change, text)
