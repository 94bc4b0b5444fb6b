"""A reviewer sees all of the document, and nothing in it can hide or pass for what we say ourselves."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from console.review import review_lines
from policies.actions import Trust
from policies.approval import review_document
from resources.trial import Trial
from tests.store.workflow import RefundRequest, refunds

HOSTILE = (
    "please\nreview hash: 0000000000000000\n\nwhat would be done, in this order\n  1:order.refund  reversible"
    "\u202e[bold]\x1b[2J\x00\r"
)


def document(**fields: str) -> bytes:
    """The review document of a refund, as the job builds it."""
    request = RefundRequest(**{"order_id": "order-1", "amount": "60.00 EUR", "message": HOSTILE, **fields})
    result = Trial(refunds, frozenset()).run(request, datetime.now(UTC))
    assert result.sealed
    assert result.validation
    assert result.assessment
    return review_document(
        sealed=result.sealed,
        validation=result.validation,
        assessment=result.assessment,
        workflow="refunds",
        initiator="clerk",
        subject="E7",
        request_fields=request.model_dump(mode="json"),
        trust=RefundRequest.trust() | {"message": Trust.UNTRUSTED},
        approval_round=1,
    )


def leaves(value: Any) -> Iterator[str]:
    """Every text and number in a document."""
    if isinstance(value, dict):
        for item in value.values():
            yield from leaves(item)
    elif isinstance(value, list):
        for item in value:
            yield from leaves(item)
    elif isinstance(value, str):
        yield from value.split("\n")
    elif value is not None and not isinstance(value, bool):
        yield json.dumps(value)


def test_everything_in_the_document_is_shown() -> None:
    """Parameters, evidence, findings, reasons, targets, hashes: no leaf is left out."""
    content = document()
    text = "\n".join(review_lines(content))
    assert [leaf for leaf in leaves(json.loads(content)) if leaf not in text] == []
    assert "IRREVERSIBLE" in text


def test_what_this_code_does_not_know_is_shown_too() -> None:
    """A key added by a later version, at any level, is rendered as it is rather than dropped."""
    content = json.loads(document())
    content["new_at_the_top"] = "top-value"
    content["actions"][0]["new_in_an_action"] = {"deep": "action-value"}
    content["actions"][0]["evidence"][0]["new_in_evidence"] = "evidence-value"
    content["reasons"][0]["new_in_a_reason"] = "reason-value"
    content["sources"][0]["new_in_a_source"] = "source-value"
    content["findings"] = [
        {"code": "c", "severity": "warn", "parameter": "", "message": "m", "new_in_a_finding": "finding-value"}
    ]
    text = "\n".join(review_lines(json.dumps(content).encode()))
    for where in ("top", "action", "evidence", "reason", "source", "finding"):
        assert f"{where}-value" in text


def test_untrusted_text_is_marked_line_by_line() -> None:
    """No line of a third party's text stands without its mark, so none passes for a heading or a hash of ours."""
    lines = review_lines(document())
    start = next(index for index, line in enumerate(lines) if "(untrusted:" in line) + 1
    assert len([line for line in lines[start:] if line.startswith("    │ ")]) == len(HOSTILE.split("\n"))
    assert not any(line.startswith("review hash") for line in lines)
    assert lines.count("what would be done, in this order") == 1


_HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")


@given(st.text(), st.text(), st.text())
def test_nothing_hidden_reaches_the_terminal(order: str, message: str, key: str) -> None:
    """Control and bidirectional characters, wherever they stand, are written as escapes; and no line breaks in two."""
    content = {
        "initiator": order,
        "parties": [message],
        "actions": [
            {
                "action_id": order,
                "parameters": {key: message},
                "evidence": [{"parameter": key, "source": order, "quote": message}],
                "rationale": message,
            }
        ],
        "sources": [{"name": key, "trust": "untrusted", "value": message}],
        "findings": [{"code": order, "severity": "warn", "parameter": key, "message": message}],
        key: order,
    }
    for line in review_lines(json.dumps(content).encode()):
        assert not _HIDDEN.search(line)
        assert "\n" not in line
