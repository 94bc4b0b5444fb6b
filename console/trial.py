"""`failsafe try`: what a workflow would do with the requests of a file."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from console.output import AsJson, print_json, print_lines, print_table
from console.review import one_line
from console.row_files import read_rows
from console.workflow_modules import WorkflowModules, find_workflow
from resources.store.rows import AcceptableRow, RowProblem, check_row

if TYPE_CHECKING:
    from policies.policy import Policy
    from resources.trial import TrialResult
    from resources.workflow import Workflow

commands = typer.Typer()


@commands.command("try")
def try_file(
    workflow: Annotated[str, typer.Argument(help="The workflow's name.")],
    file: Annotated[Path, typer.Argument(help="Requests as for `failsafe submit`.", exists=True, dir_okay=False)],
    workflow_module: WorkflowModules = None,
    role: Annotated[
        list[str] | None,
        typer.Option(
            help="A role of the principal who would submit; repeatable. Default: every role the policy permits."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show proposals, findings, tiers and decisions for each request of a file, without doing anything.

    Neither the store nor a provider is touched: the extractor is asked once, trusted records are read. Requests of the
    file are compared with each other for claims, not with what was handed in before. Exit code 1 if a row is wrong.
    """
    definition = find_workflow(workflow, workflow_module)
    results = list(_results(definition, file, role))
    if as_json:
        print_json([_document(number, result) for number, result in results])
    else:
        print_table(
            ["line", "proposed", "tier", "decision", "why"],
            [_line(number, result) for number, result in results],
            empty="the file holds no request",
        )
        print_lines(f"policy {definition.policy_in_force().version}, mode {definition.policy_in_force().mode}")
    if any(isinstance(result, list) for _, result in results):
        raise typer.Exit(1)


def _results(
    workflow: Workflow, file: Path, roles: list[str] | None
) -> Iterator[tuple[int, TrialResult | list[RowProblem]]]:
    from resources.trial import Trial

    policy = workflow.policy_in_force()
    trial = Trial(workflow, frozenset(_permitted_roles(policy) if roles is None else roles))
    for number, received in read_rows(file):
        row = [received] if isinstance(received, RowProblem) else check_row(number, received, workflow.request)
        if isinstance(row, AcceptableRow):
            yield number, trial.run(workflow.request.model_validate_json(row.payload), datetime.now(UTC))
        else:
            yield number, row


def _permitted_roles(policy: Policy) -> set[str]:
    return {role for roles in (policy.permissions or {}).values() for role in roles}


def _line(number: int, result: TrialResult | list[RowProblem]) -> tuple[object, ...]:
    if isinstance(result, list):
        return number, "", "", "wrong row", "; ".join(f"{one.field} {one.reason}".strip() for one in result)
    proposed = (
        [f"{one.action_type.name} {_short(one.values)}" for one in result.sealed.actions] if result.sealed else []
    )
    tier = result.assessment.tier.value if result.assessment else ""
    return number, "\n".join(proposed), tier, result.decision, result.reason


def _short(values: Any) -> str:
    return ", ".join(f"{name}={one_line(value)}" for name, value in values.items() if value is not None)


def _document(number: int, result: TrialResult | list[RowProblem]) -> dict[str, Any]:
    if isinstance(result, list):
        return {"line": number, "problems": [{"field": one.field, "reason": one.reason} for one in result]}
    judged = result.assessment
    return {
        "line": number,
        "decision": result.decision,
        "reason": result.reason,
        "actions": [
            {
                "type": one.action_type.name,
                "parameters": dict(one.values),
                "evidence": [{"parameter": e.parameter, "source": e.source, "quote": e.quote} for e in one.evidence],
            }
            for one in (result.sealed.actions if result.sealed else ())
        ],
        "findings": [
            {"code": one.code, "severity": one.severity, "parameter": one.parameter, "message": one.message}
            for one in result.findings
        ],
        "tier": judged.tier if judged else None,
        "reasons": [{"tier": one.tier, "because": one.because} for one in judged.reasons] if judged else [],
        "mode": judged.mode if judged else None,
        "policy_version": judged.policy_version if judged else None,
    }
