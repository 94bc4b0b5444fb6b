"""What an extractor returns, how its output is kept, and how it is read back without trusting it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic_core import to_jsonable_python

from policies.actions import Action
from policies.errors import CanonicalFormError
from policies.findings import MAX_FINDINGS, Finding, refusal
from policies.strict_json import read_json

MAX_OUTPUT = 256_000
"""Longest output in bytes that is read; a proposal of twenty actions needs a tenth."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """A verbatim quote from a named source that supports one parameter.

    `source` is a request field, or `record:<name>` for a trusted record.
    """

    parameter: str
    source: str
    quote: str


@dataclass(frozen=True, slots=True)
class ProposedAction:
    """One action as the model proposes it; nothing in it is checked yet. `confidence` is between 0 and 1."""

    type: str
    parameters: dict[str, Any]
    evidence: tuple[Evidence, ...] = ()
    rationale: str = ""
    confidence: float | None = None


@dataclass(frozen=True, slots=True)
class Proposal:
    """The actions a model proposes for one request, in its order."""

    actions: tuple[ProposedAction, ...]


@dataclass(frozen=True, slots=True)
class Abstention:
    """The model proposes nothing and says why; a person decides."""

    reason: str


def propose(
    action: type[Action],
    /,
    *,
    evidence: Iterable[Evidence] = (),
    rationale: str = "",
    confidence: float | None = None,
    **parameters: Any,
) -> ProposedAction:
    """A proposed action of a declared type; money, dates and decimals are written as JSON."""
    values = {name: to_jsonable_python(value) for name, value in parameters.items()}
    return ProposedAction(action.action_type.name, values, tuple(evidence), rationale, confidence)


def output_bytes(output: Any) -> bytes:
    """The output as kept: JSON in ASCII escapes, so that NUL and lone surrogates survive storage.

    Whatever an extractor returned has a form: what is neither proposal nor abstention nor JSON is kept as its text and
    read back as a finding.
    """
    if isinstance(output, Abstention):
        document: Any = {"abstention": output.reason}
    elif isinstance(output, Proposal):
        document = {"actions": [_action_document(action) for action in output.actions]}
    else:
        document = output
    try:
        return json.dumps(document, separators=(",", ":"), default=to_jsonable_python).encode("ascii")
    except (TypeError, ValueError, RecursionError):  # pydantic's serialisation errors are ValueErrors
        return json.dumps({"unreadable": f"{type(output).__name__}: {str(output)[:1000]}"}).encode("ascii")


def _action_document(action: ProposedAction) -> dict[str, Any]:
    return {
        "type": action.type,
        "parameters": action.parameters,
        "evidence": [{"parameter": one.parameter, "source": one.source, "quote": one.quote} for one in action.evidence],
        "rationale": action.rationale,
        "confidence": action.confidence,
    }


def read_output(data: bytes) -> Proposal | Abstention | tuple[Finding, ...]:
    """The proposal or abstention that `data` holds, or the findings that refuse it. No bytes make it raise."""
    if len(data) > MAX_OUTPUT:
        return (refusal("not_a_proposal", "", f"the output is {len(data)} bytes; at most {MAX_OUTPUT} are read"),)
    try:
        document = read_json(data)
    except CanonicalFormError as error:
        return (refusal("not_a_proposal", "", str(error)),)
    if not isinstance(document, dict):
        return (refusal("not_a_proposal", "", "the output must be a JSON object with `actions` or `abstention`"),)
    return _read_abstention(document["abstention"]) if set(document) == {"abstention"} else _read_proposal(document)


def _read_abstention(reason: Any) -> Abstention | tuple[Finding, ...]:
    if isinstance(reason, str) and reason.strip():
        return Abstention(reason)
    return (refusal("wrong_type", "abstention", "an abstention must give its reason as text"),)


def _read_proposal(document: Mapping[str, Any]) -> Proposal | tuple[Finding, ...]:
    findings: list[Finding] = []
    _check_keys(document, "", {"actions"}, set(), findings)
    proposed = document.get("actions", [])
    _check_type(proposed, list, "actions", findings)
    if findings:
        return tuple(findings[:MAX_FINDINGS])
    actions = [_read_action(action, f"actions[{index}]", findings) for index, action in enumerate(proposed)]
    if not actions:
        findings.append(refusal("no_actions", "actions", "propose at least one action, or abstain with a reason"))
    return tuple(findings[:MAX_FINDINGS]) or Proposal(tuple(action for action in actions if action is not None))


def _read_action(value: Any, path: str, findings: list[Finding]) -> ProposedAction | None:
    if not _check_object(value, path, {"type", "parameters"}, {"evidence", "rationale", "confidence"}, findings):
        return None
    _check_type(value["type"], str, f"{path}.type", findings)
    _check_type(value["parameters"], dict, f"{path}.parameters", findings)
    rationale = value.get("rationale", "")
    _check_type(rationale, str, f"{path}.rationale", findings)
    evidence = value.get("evidence", [])
    if _check_type(evidence, list, f"{path}.evidence", findings):
        evidence = [_read_evidence(one, f"{path}.evidence[{index}]", findings) for index, one in enumerate(evidence)]
    confidence = value.get("confidence")
    if confidence is not None and not _is_share(confidence):
        findings.append(refusal("bad_value", f"{path}.confidence", "confidence must be a number from 0 to 1, or null"))
    if findings:
        return None
    return ProposedAction(
        value["type"],
        value["parameters"],
        tuple(evidence),
        rationale,
        None if confidence is None else float(confidence),
    )


def _read_evidence(value: Any, path: str, findings: list[Finding]) -> Evidence | None:
    fields = {"parameter", "source", "quote"}
    if not _check_object(value, path, fields, set(), findings):
        return None
    wrong = [name for name in sorted(fields) if not _check_type(value[name], str, f"{path}.{name}", findings)]
    return None if wrong else Evidence(value["parameter"], value["source"], value["quote"])


def _check_object(value: Any, path: str, required: set[str], optional: set[str], findings: list[Finding]) -> bool:
    return _check_type(value, dict, path, findings) and _check_keys(value, path, required, optional, findings)


def _check_keys(
    value: Mapping[str, Any], path: str, required: set[str], optional: set[str], findings: list[Finding]
) -> bool:
    prefix = f"{path}." if path else ""
    missing = sorted(required - value.keys())
    extra = sorted(value.keys() - required - optional)
    findings.extend(refusal("missing_field", prefix + name, f"`{name}` is required") for name in missing)
    findings.extend(refusal("extra_field", prefix + name, "this field does not belong here") for name in extra)
    return not missing and not extra


def _check_type(value: Any, expected: type, path: str, findings: list[Finding]) -> bool:
    if isinstance(value, expected):
        return True
    findings.append(refusal("wrong_type", path, f"this must be {_TYPE_NAMES[expected]}"))
    return False


_TYPE_NAMES: dict[type, str] = {str: "text", dict: "an object", list: "a list"}


def _is_share(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and 0 <= value <= 1
