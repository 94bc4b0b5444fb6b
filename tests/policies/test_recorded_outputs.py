"""What real models really called: malformed calls are refused with findings, and none makes us crash."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import create_model

from policies.actions import Action
from policies.catalogue import Catalogue, CatalogueEntry
from policies.findings import CODES, Severity
from policies.outcomes import Semantics
from policies.proposals import Abstention, Proposal, ProposedAction, output_bytes, read_output
from policies.records import needed_records
from policies.sealing import Sealed, seal

TYPES: dict[str, Any] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "array": list[Any],
    "object": dict[str, Any],
    "null": None,
}


def lines(path: Path) -> Iterator[dict[str, Any]]:
    """The cases of one file."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


def annotation(schema: dict[str, Any]) -> Any:
    """The Python type that a parameter's JSON Schema means."""
    options = schema.get("anyOf")
    if options:
        kinds = [annotation(option) for option in options]
        union = kinds[0]
        for kind in kinds[1:]:
            union = union | kind
        return union
    return TYPES.get(str(schema.get("type")), Any)


def catalogue(suite: Path) -> Catalogue:
    """A catalogue with one action type for each tool of a published suite."""
    entries = {}
    for tool in json.loads(suite.read_text("utf-8"))["tools"]:
        properties = tool["parameters"].get("properties", {})
        required = tool["parameters"].get("required", [])
        fields: dict[str, Any] = {}
        for name, schema in properties.items():
            kind = annotation(schema)
            fields[name] = (kind, ...) if name in required else (kind | None, schema.get("default"))
        model = create_model(
            "Tool", __base__=Action, __cls_kwargs__={"name": tool["name"], "reversible": False}, **fields
        )
        entries[tool["name"]] = CatalogueEntry(model.action_type, "Adapter", "sandbox", Semantics())
    return Catalogue(entries)


def outcome(call: dict[str, Any], tools: Catalogue) -> Sealed | set[str]:
    """What becomes of one recorded call on its way from the model's bytes: sealed, or the codes of its findings."""
    action = ProposedAction(call["name"], call["arguments"], rationale=call.get("rationale") or "")
    read = read_output(output_bytes(Proposal((action,))))
    if isinstance(read, Proposal):
        needed_records(read, tools)
        result = seal(
            read,
            request_id="r",
            revision=1,
            workflow="recorded",
            workflow_version="1",
            catalogue=tools,
            sources={},
            records={},
        )
        if isinstance(result, Sealed):
            return result
        read = result
    assert isinstance(read, tuple)
    assert {finding.severity for finding in read} == {Severity.REFUSE}
    return {finding.code for finding in read}


REFUSED_AS = {
    "unknown_tool": {"unknown_action"},
    "missing_field": {"missing_field"},
    "extra_field": {"extra_field"},
}


@pytest.mark.parametrize(
    "source", ["agent-runs/agentdojo", "agent-runs/agentdyn", "agent-runs/drift", "workbench/runs"]
)
def test_recorded_calls(shared_data: Path, source: str) -> None:
    """Every recorded call is sealed or refused; what is unknown, missing or extra is found by that name."""
    suites = {path.stem: catalogue(path) for path in (shared_data / "tool-schemas").glob("*.json")}
    sealed = refused = 0
    for case in lines(shared_data / f"{source}.jsonl.gz"):
        tools = suites["workbench" if case["suite"].startswith("workbench") else case["suite"]]
        for call in case["proposed_actions"]:
            result = outcome(call, tools)
            problems = {problem.split(":")[0] for problem in call.get("schema_problems", [])}
            if isinstance(result, Sealed):
                sealed += 1
                assert not problems & REFUSED_AS.keys(), call
            else:
                refused += 1
                for problem in problems & REFUSED_AS.keys():
                    assert result & (REFUSED_AS[problem] | {"unknown_action"}), call
    assert sealed > 10 * refused > 0


def test_recorded_texts_are_no_proposals(shared_data: Path) -> None:
    """Prose, cut JSON and calls written as text are refused as they are: nothing is fished out of them."""
    texts = [case["raw_output"] for case in lines(shared_data / "smollm2/outputs.jsonl.gz")]
    for source in ("agent-runs/agentdojo", "agent-runs/agentdyn", "agent-runs/drift", "workbench/runs"):
        texts += [str(text) for case in lines(shared_data / f"{source}.jsonl.gz") for text in case["raw_output"]]
    assert len(texts) > 250
    for text in texts:
        for data in (text.encode("utf-8", "surrogatepass"), output_bytes(text)):
            result = read_output(data)
            assert isinstance(result, tuple)
            assert not isinstance(result, Abstention)
            assert {finding.code for finding in result} <= CODES.keys()
