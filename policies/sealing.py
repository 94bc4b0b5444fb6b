"""From what a model proposed to what may be judged: checked, in catalogue order, canonical, named by a hash."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from pydantic import ValidationError
from pydantic_core import to_json

from policies.actions import MAX_TEXT, Action, ActionType
from policies.catalogue import Catalogue, CatalogueEntry
from policies.errors import CanonicalFormError, DefinitionError
from policies.findings import MAX_FINDINGS, Finding, refusal
from policies.hashing import PARAMETERS, PROPOSAL, canonical_bytes, domain_hash
from policies.money import MAX_EXACT_INTEGER
from policies.proposals import Evidence, Proposal, ProposedAction
from policies.records import ResolvedRecords, field_value, left_out, record_key
from policies.redaction import UNSTORABLE
from policies.strict_json import read_json

__all__ = ["Catalogue", "CatalogueEntry", "Sealed", "SealedAction", "seal", "unseal"]

MAX_ACTIONS = 20
MAX_EVIDENCE = 50
MAX_DEPTH = 8
"""Deepest nesting of parameters."""


@dataclass(frozen=True, slots=True)
class SealedAction:
    """One action as it would run. `values` are the normalised parameters, `parameters` their canonical bytes."""

    action_id: str
    ordinal: int
    action_type: ActionType
    action: Action
    parameters: bytes
    parameters_hash: bytes
    evidence: tuple[Evidence, ...]
    rationale: str
    confidence: Decimal | None
    adapter: str
    target: str
    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Sealed:
    """One proposal of one request. `canonical` says all of it; `hash` names it."""

    request_id: str
    revision: int
    canonical: bytes
    hash: bytes
    actions: tuple[SealedAction, ...]


@dataclass(frozen=True, slots=True)
class _Draft:
    """A proposed action that fits the catalogue, before its place in the order is known."""

    entry: CatalogueEntry
    action: Action
    values: dict[str, Any]
    parameters: bytes
    evidence: tuple[Evidence, ...]
    rationale: str
    confidence: Decimal | None

    def sealed(self, ordinal: int) -> SealedAction:
        kind = self.entry.action_type
        return SealedAction(
            f"{ordinal}:{kind.name}",
            ordinal,
            kind,
            self.action,
            self.parameters,
            domain_hash(PARAMETERS, self.parameters),
            self.evidence,
            self.rationale,
            self.confidence,
            self.entry.adapter,
            self.entry.target,
            self.values,
        )


def seal(
    proposal: Proposal,
    *,
    request_id: str,
    revision: int,
    workflow: str,
    workflow_version: str,
    catalogue: Catalogue,
    sources: Mapping[str, str],
    records: ResolvedRecords,
) -> Sealed | tuple[Finding, ...]:
    """The sealed proposal, or the findings that refuse it. No proposal makes it raise.

    `sources` holds the hex hash of each source that the model read. An authority parameter that the model left out is
    filled from its trusted record. Actions run in catalogue order (reversible, irreversible, notifications) and, within
    one rank, in the order proposed; the order is part of what the hash names.
    """
    if not proposal.actions:
        return (refusal("no_actions", "actions", "propose at least one action, or abstain with a reason"),)
    if len(proposal.actions) > MAX_ACTIONS:
        found = len(proposal.actions)
        return (refusal("too_many_actions", "actions", f"{found} actions; at most {MAX_ACTIONS} in one proposal"),)
    findings: list[Finding] = []
    drafts = [
        _draft(proposed, f"actions[{index}]", catalogue, records, findings)
        for index, proposed in enumerate(proposal.actions)
    ]
    accepted = [draft for draft in drafts if draft is not None]
    if not findings and len({(draft.entry.action_type.name, draft.parameters) for draft in accepted}) < len(accepted):
        message = "two actions have one type and the same parameters; one effect cannot be told from its repetition"
        findings.append(refusal("duplicate_action", "actions", message))
    if findings:
        return tuple(findings[:MAX_FINDINGS])
    accepted.sort(key=lambda draft: draft.entry.action_type.rank)  # stable: keeps the order proposed within a rank
    actions = tuple(draft.sealed(ordinal) for ordinal, draft in enumerate(accepted, start=1))
    canonical = canonical_bytes(
        {
            "request_id": request_id,
            "revision": revision,
            "workflow": workflow,
            "workflow_version": workflow_version,
            "catalogue": catalogue.hash,
            "sources": dict(sources),
            "actions": [_document(action) for action in actions],
        }
    )
    return Sealed(request_id, revision, canonical, domain_hash(PROPOSAL, canonical), actions)


def unseal(canonical: bytes, catalogue: Catalogue) -> Sealed:
    """The sealed proposal that stored canonical bytes hold.

    Raises:
        DefinitionError: the catalogue, an adapter or a target is no longer the one it was sealed for; propose anew.
        CanonicalFormError: the bytes are not a sealed proposal.
    """
    document = read_json(canonical)
    try:
        if document["catalogue"] != catalogue.hash:
            raise DefinitionError("the action catalogue changed since this was proposed; make a new proposal")
        actions = tuple(
            _unsealed_action(ordinal, entry, catalogue) for ordinal, entry in enumerate(document["actions"], start=1)
        )
        return Sealed(
            document["request_id"], document["revision"], canonical, domain_hash(PROPOSAL, canonical), actions
        )
    except (KeyError, TypeError, ValidationError):
        raise CanonicalFormError("the bytes are not a sealed proposal; read them from the proposals table") from None


def _unsealed_action(ordinal: int, document: Mapping[str, Any], catalogue: Catalogue) -> SealedAction:
    entry = catalogue.entries[document["type"]]
    if (entry.adapter, entry.target) != (document["adapter"], document["target"]):
        raise DefinitionError(
            f"{document['type']} was proposed for {document['adapter']} at {document['target']}, which is now "
            f"{entry.adapter} at {entry.target}; make a new proposal"
        )
    confidence = document["confidence"]
    return _Draft(
        entry,
        _as_it_was(entry, document["parameters"]),
        document["parameters"],
        canonical_bytes(document["parameters"]),
        tuple(Evidence(one["parameter"], one["source"], one["quote"]) for one in document["evidence"]),
        document["rationale"],
        None if confidence is None else Decimal(confidence),
    ).sealed(ordinal)


def _as_it_was(entry: CatalogueEntry, parameters: Mapping[str, Any]) -> Action:
    try:
        return entry.action_type.model.model_validate_json(to_json(parameters))
    except ValidationError:
        raise
    except Exception as error:  # noqa: BLE001  # validators of the action class may be newer than what was sealed
        name, kind = entry.action_type.name, type(error).__name__
        raise DefinitionError(
            f"the validators of {name} failed with {kind} on what was proposed; make a new proposal"
        ) from None


def _document(action: SealedAction) -> dict[str, Any]:
    return {
        "action_id": action.action_id,
        "type": action.action_type.name,
        "parameters": action.values,
        "evidence": [{"parameter": one.parameter, "source": one.source, "quote": one.quote} for one in action.evidence],
        "rationale": action.rationale,
        "confidence": None if action.confidence is None else f"{action.confidence:f}",
        "adapter": action.adapter,
        "target": action.target,
    }


def _draft(
    proposed: ProposedAction, path: str, catalogue: Catalogue, records: ResolvedRecords, findings: list[Finding]
) -> _Draft | None:
    entry = catalogue.entries.get(proposed.type)
    if entry is None or proposed.type in catalogue.undo_types:
        findings.append(_not_proposable(proposed.type, f"{path}.type", catalogue))
        return None
    unstorable = tuple(_unstorable(proposed, path))
    if unstorable:
        findings.extend(unstorable)
        return None
    model = entry.action_type.model
    try:
        action = model.model_validate_json(to_json(_filled(model, proposed.parameters, records)))
        values = action.model_dump(mode="json")
        parameters = canonical_bytes(values)
    except ValidationError as error:
        findings.extend(_schema_findings(error, f"{path}.parameters"))
        return None
    except CanonicalFormError as error:
        findings.append(refusal("not_canonical", f"{path}.parameters", str(error)))
        return None
    except Exception as error:  # noqa: BLE001 - the action class's own validators run on what a model wrote
        message = f"the validators of {proposed.type} failed with {type(error).__name__}"
        findings.append(refusal("bad_value", f"{path}.parameters", message))
        return None
    confidence = None if proposed.confidence is None else Decimal(repr(float(proposed.confidence)))
    return _Draft(entry, action, values, parameters, proposed.evidence, proposed.rationale, confidence)


def _not_proposable(action_type: str, path: str, catalogue: Catalogue) -> Finding:
    if action_type in catalogue.undo_types:
        message = f"{action_type} undoes another action and is planned from it, never proposed"
        return refusal("undo_proposed", path, message)
    known = ", ".join(sorted(catalogue.entries.keys() - catalogue.undo_types))
    return refusal("unknown_action", path, f"{action_type[:80]!r} is not one of: {known}")


def _filled(model: type[Action], parameters: dict[str, Any], records: ResolvedRecords) -> dict[str, Any]:
    """The parameters with what the model left out taken from trusted records; what they lack stays missing."""
    missing = left_out(model, parameters)
    if not missing:
        return parameters
    filled = dict(parameters)
    for link in missing:
        key = record_key(parameters.get(link.key))
        record = None if key is None else records.get((link.record, key))
        if record is not None and link.field in record.fields:
            filled[link.parameter] = field_value(record, link.field)
    return filled


def _schema_findings(error: ValidationError, path: str) -> Iterator[Finding]:
    for detail in error.errors(include_url=False, include_context=False, include_input=False):
        place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in detail["loc"])
        kind = detail["type"]
        code = _SCHEMA_CODES.get(kind) or ("wrong_type" if kind.endswith("_type") else "bad_value")
        yield refusal(code, path + place, detail["msg"])


_SCHEMA_CODES = {"missing": "missing_field", "extra_forbidden": "extra_field"}


def _unstorable(proposed: ProposedAction, path: str) -> Iterator[Finding]:
    """Values and texts without canonical form, too long or too deep, before the schema looks at them."""
    yield from _text_findings(proposed.rationale, f"{path}.rationale")
    if len(proposed.evidence) > MAX_EVIDENCE:
        message = f"{len(proposed.evidence)} quotes; at most {MAX_EVIDENCE} support one action"
        yield refusal("too_much_evidence", f"{path}.evidence", message)
    for index, evidence in enumerate(proposed.evidence[:MAX_EVIDENCE]):
        yield from _text_findings(evidence.parameter, f"{path}.evidence[{index}].parameter")
        yield from _text_findings(evidence.source, f"{path}.evidence[{index}].source")
        yield from _text_findings(evidence.quote, f"{path}.evidence[{index}].quote")
    yield from _value_findings(proposed.parameters, f"{path}.parameters", MAX_DEPTH)


def _text_findings(text: str, path: str) -> Iterator[Finding]:
    if len(text) > MAX_TEXT:
        yield refusal("text_too_long", path, f"{len(text)} characters; at most {MAX_TEXT} are accepted")
    if UNSTORABLE.search(text):
        yield refusal("forbidden_character", path, "the text holds a NUL or a lone surrogate")


def _value_findings(value: Any, path: str, depth: int) -> Iterator[Finding]:
    if isinstance(value, str):
        yield from _text_findings(value, path)
    elif isinstance(value, int | float):  # bool is among them and always in range; NaN compares false
        if not -MAX_EXACT_INTEGER <= value <= MAX_EXACT_INTEGER:
            yield refusal("not_canonical", path, "the number is not finite or beyond 2^53; send it as a string")
    elif depth == 0:
        yield refusal("not_canonical", path, f"nested deeper than {MAX_DEPTH} levels; flatten it")
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from _text_findings(str(name), path)
            yield from _value_findings(item, f"{path}.{name}", depth - 1)
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _value_findings(item, f"{path}[{index}]", depth - 1)
    elif value is not None:
        yield refusal("wrong_type", path, f"{type(value).__name__} is not JSON; build the action with propose()")
