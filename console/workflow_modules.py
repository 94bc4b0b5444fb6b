"""Finding a workflow by its name in the modules that define them."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Annotated

import typer

from policies.errors import DefinitionError

if TYPE_CHECKING:
    from resources.workflow import Workflow

WorkflowModules = Annotated[
    list[str] | None,
    typer.Option(
        "--workflow-module",
        "-m",
        metavar="MODULE[:NAME]",
        help="Python module that defines the workflow, such as examples.expenses.workflow, or module:variable. "
        "Repeatable; default: the comma-separated FAILSAFE_WORKFLOWS.",
    ),
]


def find_workflow(name: str, modules: list[str] | None) -> Workflow:
    """The workflow called `name` in one of the modules; the working folder is searched first, as `python -m` does.

    Raises:
        DefinitionError: no module was named, one cannot be imported, or none defines such a workflow.
    """
    named = _named(modules)
    if not named:
        raise DefinitionError("say where the workflow is defined: -m package.module, or set FAILSAFE_WORKFLOWS")
    known = find_workflows(modules)
    if name not in known:
        raise DefinitionError(
            f"no workflow {name!r} in {', '.join(named)}; there is: {', '.join(sorted(known)) or 'none'}"
        )
    return known[name]


def find_workflows(modules: list[str] | None) -> dict[str, Workflow]:
    """Every workflow of the modules by its name; none where no module is named.

    Raises:
        DefinitionError: a module cannot be imported.
    """
    if "" not in sys.path:
        sys.path.insert(0, "")
    return {workflow.name: workflow for one in _named(modules) for workflow in _workflows_of(one)}


def _named(modules: list[str] | None) -> list[str]:
    return modules or [part.strip() for part in os.environ.get("FAILSAFE_WORKFLOWS", "").split(",") if part.strip()]


def _workflows_of(named: str) -> list[Workflow]:
    from resources.workflow import Workflow  # brings Dagster, which commands that need no workflow do without

    module_name, _, variable = named.partition(":")
    try:
        module = import_module(module_name)
    except ImportError as error:
        raise DefinitionError(
            f"module {module_name} cannot be imported: {error}; run this in your project's folder"
        ) from error
    values = vars(module).values() if not variable else [vars(module).get(variable)]
    return [value for value in values if isinstance(value, Workflow)]
