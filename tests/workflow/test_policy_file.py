"""A policy file that is wrong is refused with file, line and remedy."""

from __future__ import annotations

from pathlib import Path

import pytest

from policies.errors import DefinitionError
from resources.policy_file import read_policy
from tests.workflow.refunds import refunds

GOOD = refunds.policy_path.read_text()


def refused(tmp_path: Path, text: str | bytes) -> str:
    """What reading `text` as a policy says."""
    file = tmp_path / "policy.yaml"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(DefinitionError) as caught:
        read_policy(file, refunds.catalogue)
    return str(caught.value).replace(str(file), "FILE")


def test_a_policy_is_read_and_its_content_has_a_hash(tmp_path: Path) -> None:
    """White space and comments change nothing, a rule does."""
    file = tmp_path / "policy.yaml"
    hashes = []
    for text in (GOOD, f"# a comment\n{GOOD}\n", GOOD.replace("50.00", "60.00")):
        file.write_text(text)
        hashes.append(read_policy(file, refunds.catalogue).hash)
    assert hashes[0] == hashes[1] != hashes[2]


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("mode: shadow", "mode: bold", "FILE:2: mode: "),
        ("mode: shadow", "mode: shadow\nmode: live", "FILE:3: key 'mode' stands here and in line 2; keep one of them"),
        ("people: 1, expires", "people: 1, people: 2, expires", "FILE:8: key 'people' stands here and in line 8"),
        ("tier: high", "tier: huge", "FILE:5: tiers[1].tier (rests on third-party text only)"),
        ("people: 2", "people: 0", "FILE:9: decisions.high"),
        ("over: 50.00 EUR", "over: fifty", "FILE:4: tiers[0].over"),
        ("over: 50.00 EUR", "ower: 50.00 EUR", "FILE:4: tiers[0].ower"),
        ("action: order.refund", "action: order.refused", "FILE:4: tiers[0] (above the clerk's limit)"),
        ("tiers:", "limits: {order.refused: 1.00 EUR}\ntiers:", "FILE:3: limits.order.refused: this action is not"),
        ('version: "2026-11-29"', "version: 2026-11-29", "FILE:1: version: YAML reads"),
        ("mode: shadow", "mode: [shadow", "FILE:3: "),
        ("low: auto", "low: &a auto\n  odd: *a", "FILE:8: aliases are not followed"),
        ("low: auto", "low: !!python/object:os.system auto", "FILE:7: could not determine a constructor"),
        ("mode: shadow\n", "", "FILE: mode: "),
    ],
)
def test_a_mistake_is_reported_where_it_stands(tmp_path: Path, before: str, after: str, said: str) -> None:
    """Repeated keys, aliases, wrong values, unknown keys and misfits name their line."""
    assert before in GOOD
    assert refused(tmp_path, GOOD.replace(before, after)).startswith(said)


def test_every_mistake_has_a_line_of_its_own(tmp_path: Path) -> None:
    """Nobody has to load a policy five times to correct five mistakes."""
    said = refused(tmp_path, GOOD.replace("mode: shadow", "mode: bold").replace("tier: high", "tier: huge"))
    assert [line.split(" ")[0] for line in said.split("\n")] == ["FILE:2:", "FILE:5:"]


@pytest.mark.parametrize(
    "text", ["", "# nothing\n", "- a\n", "just text", b"\xff\xfe", "a: b: c", "\x00", "%", "a: " + "[" * 3000]
)
def test_what_is_no_policy_at_all_is_refused(tmp_path: Path, text: str | bytes) -> None:
    """No content makes reading a policy end in anything but a definition error that names the file."""
    assert refused(tmp_path, text).startswith("FILE")


def test_a_folder_is_no_policy(tmp_path: Path) -> None:
    """Nor is anything else that cannot be read as text."""
    with pytest.raises(DefinitionError, match="readable UTF-8 text file"):
        read_policy(tmp_path, refunds.catalogue)
