"""Stored rows back into what `policies` judges, and the judgement back into rows."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from ops.batch import WorkflowRun
from policies.actions import Trust
from policies.errors import FailsafeError
from policies.findings import Finding, Severity
from policies.policy import Policy
from policies.records import ResolvedRecords
from policies.rules import Demand, Escalation
from policies.sealing import Sealed
from policies.validation import Validation, validate
from resources.sources import request_fields
from resources.workflow import Workflow


@dataclass(frozen=True, slots=True)
class Case:
    """One request with its sealed proposal, ready to be judged."""

    id: uuid.UUID
    revision: int
    round: int
    sealed: Sealed
    fields: Mapping[str, Any]
    edited: bool
    supplied_by_another: bool


def read_cases(run: WorkflowRun, rows: Sequence[Any]) -> tuple[list[tuple[Any, Case]], list[tuple[uuid.UUID, str]]]:
    """Cases of stored rows, and the ids that this code cannot read, each with the reason."""
    workflow = run.workflow
    cases: list[tuple[Any, Case]] = []
    unreadable: list[tuple[uuid.UUID, str]] = []
    for row in rows:
        if row.workflow_version not in workflow.carried_versions:
            unreadable.append((row.id, f"workflow version {row.workflow_version} is no longer carried here"))
            continue
        try:
            sealed = run.proposals.read(row.canonical)
            fields = request_fields(workflow.request.model_validate_json(row.payload))
        except FailsafeError as error:
            unreadable.append((row.id, str(error)))
        except Exception:  # noqa: BLE001  # validators of the request class may be newer than what is stored
            unreadable.append((row.id, "the request no longer fits its schema"))
        else:
            told = row.edited, row.supplied_by_another
            cases.append((row, Case(row.id, row.revision, row.round, sealed, fields, *told)))
    return cases, unreadable


def judge(workflow: Workflow, policy: Policy, case: Case, roles: Sequence[str], records: ResolvedRecords) -> Validation:
    """Validate one case by the facts as they are now."""
    return validate(
        case.sealed,
        request_fields=case.fields,
        trust=workflow.request.trust(),
        roles=frozenset(roles),
        policy=policy,
        records=records,
        catalogue=workflow.catalogue,
    )


def stored_validation(row: Any) -> Validation:
    """The validation that a row of findings holds."""
    findings = tuple(
        Finding(item["code"], Severity(item["severity"]), item["parameter"], item["message"]) for item in row.items
    )
    return Validation(findings, row.verdict, frozenset(row.parties), Trust(row.weakest_trust))


def demand_document(demand: Demand | None) -> dict[str, Any] | None:
    """A demand as it is stored: durations in seconds."""
    if demand is None:
        return None
    return {
        "roles": list(demand.roles),
        "people": demand.people,
        "expires_after_seconds": demand.expires_after.total_seconds(),
        "remind_after_seconds": None if demand.remind_after is None else demand.remind_after.total_seconds(),
        "escalations": [
            {"after_seconds": step.after.total_seconds(), "roles": list(step.roles)} for step in demand.escalate
        ],
    }


def stored_demand(document: dict[str, Any] | None) -> Demand | None:
    """The demand that a stored document holds."""
    if document is None:
        return None
    remind = document["remind_after_seconds"]
    return Demand(
        roles=tuple(document["roles"]),
        people=document["people"],
        expires_after=timedelta(seconds=document["expires_after_seconds"]),
        remind_after=None if remind is None else timedelta(seconds=remind),
        escalate=tuple(
            Escalation(after=timedelta(seconds=step["after_seconds"]), roles=tuple(step["roles"]))
            for step in document["escalations"]
        ),
    )


def last_id(rows: Sequence[Any]) -> uuid.UUID:
    """Where the next page of a walk in id order begins."""
    last: uuid.UUID = rows[-1].id
    return last
