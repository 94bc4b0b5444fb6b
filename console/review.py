"""A review document as text: all of it, in order, with third-party text marked line by line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from pydantic import ValidationError

from policies.money import Money
from policies.redaction import visible

_INDENT = "  "
_QUOTED = "│ "
"""Before every line of a text that others wrote, so that no such line passes for one of ours."""

_SIMPLE = (
    ("workflow", "workflow"),
    ("request_id", "request"),
    ("initiator", "submitted by"),
    ("subject", "on behalf of"),
    ("tier", "tier"),
    ("policy_version", "policy"),
    ("weakest_trust", "weakest source"),
    ("parties", "people it touches"),
    ("roles", "who may decide"),
    ("people", "people needed"),
    ("expires_after", "seconds to decide"),
    ("revision", "revision"),
    ("round", "round"),
    ("proposal_hash", "proposal hash"),
)


def review_lines(document: bytes) -> list[str]:
    """Every statement of the document on lines of its own; a key that this code does not know is shown as it is."""
    content: dict[str, Any] = json.loads(document)
    lines = [f"{label}: {one_line(content.pop(key))}" for key, label in _SIMPLE if key in content]
    lines += _section("why it is asked", _reasons(content.pop("reasons", [])))
    lines += _section("what would be done, in this order", _actions(content.pop("actions", [])))
    lines += _section("findings", _findings(content.pop("findings", [])))
    lines += _section("the request as received", _sources(content.pop("sources", [])))
    lines += _section("also", (line for key, value in content.items() for line in _field(key, value)))
    return [visible(line) for line in lines]


def _section(title: str, lines: Iterable[str]) -> list[str]:
    body = list(lines)
    return ["", title, *(_INDENT + line for line in body)] if body else []


def _reasons(reasons: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for reason in reasons:
        yield f"{one_line(reason.get('tier'))}: {one_line(reason.get('because'))}"
        yield from _rest(reason, {"tier", "because"})


def _actions(actions: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for action in actions:
        yield f"{one_line(action.get('action_id'))}  {'reversible' if action.get('reversible') else 'IRREVERSIBLE'}"
        for name, value in action.get("parameters", {}).items():
            yield from (_INDENT + line for line in _field(name, value))
        for evidence in action.get("evidence", []):
            about, source = one_line(evidence.get("parameter")), one_line(evidence.get("source"))
            yield f"{_INDENT}evidence for {about}, quoted from {source}:"
            yield from (_INDENT * 2 + line for line in _quoted(str(evidence.get("quote", ""))))
            yield from (_INDENT * 2 + line for line in _rest(evidence, {"parameter", "source", "quote"}))
        known = {"action_id", "reversible", "parameters", "evidence"}
        yield from (_INDENT + line for line in _rest(action, known))


def _findings(findings: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for finding in findings:
        place = f" at {one_line(finding['parameter'])}" if finding.get("parameter") else ""
        code, severity = one_line(finding.get("code")), one_line(finding.get("severity"))
        yield f"{severity}: {code}{place}: {one_line(finding.get('message'))}"
        yield from _rest(finding, {"code", "severity", "parameter", "message"})


def _sources(sources: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for source in sources:
        trust = source.get("trust")
        mark = "untrusted: it may inform, never authorise" if trust == "untrusted" else f"from: {one_line(trust)}"
        yield f"{one_line(source.get('name'))} ({mark})"
        value = source.get("value")
        yield from (_INDENT + line for line in _quoted(value if isinstance(value, str) else one_line(value)))
        yield from (_INDENT + line for line in _rest(source, {"name", "trust", "value"}))


def _rest(content: Mapping[str, Any], known: set[str]) -> Iterator[str]:
    for key, value in content.items():
        if key not in known:
            yield from _field(key, value)


def _field(name: str, value: Any) -> Iterator[str]:
    if isinstance(value, str) and "\n" in value:
        yield f"{one_line(name)}:"
        yield from (_INDENT + line for line in _quoted(value))
    else:
        yield f"{one_line(name)}: {one_line(value)}"


def _quoted(text: str) -> list[str]:
    return [_QUOTED + line for line in text.split("\n")]


def one_line(value: Any) -> str:
    """A JSON value on one line as people read it: amounts in major units, line breaks as escapes, nothing as `-`."""
    if value is None:
        return "-"
    if isinstance(value, dict) and value.keys() == {"minor", "currency"}:
        # Nobody reads 6000 as 60.00 reliably; the exact number stands beside it.
        with suppress(ValidationError):
            return f"{Money.model_validate(value)} ({value['minor']} minor units)"
    if isinstance(value, str):
        return value.replace("\n", "\\n")
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return ", ".join(map(one_line, value)) or "-"
    return json.dumps(value, ensure_ascii=False)
