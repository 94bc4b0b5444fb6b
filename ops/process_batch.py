"""The one graph: the order of the steps on one page. A run advances every request of a batch as far as it goes now."""

# Dagster reads the annotation of an op's context as a type, so annotations are not postponed in this file.

from collections.abc import Callable

import dagster as dg

from ops.assess import assess as assess_step
from ops.batch import Batch, Counts, WorkflowRun, join_pass, open_pass
from ops.close_batch import close_batch as close_step
from ops.compensate import compensate as compensate_step
from ops.execute import execute as execute_step
from ops.extract import extract as extract_step
from ops.reconcile import reconcile as reconcile_step
from ops.request_approval import request_approval as request_approval_step
from ops.run_report import report
from ops.validate import validate as validate_step

STEPS: tuple[Callable[[Batch], Counts], ...] = (
    reconcile_step,
    execute_step,  # what is released already goes first: nobody waits behind new work
    extract_step,
    validate_step,
    assess_step,
    request_approval_step,
    execute_step,
    compensate_step,
)
"""One pass. Every step finds its own work in the store, so a run may begin at any of them."""


def _step(name: str, body: Callable[[Batch], Counts], description: str) -> dg.OpDefinition:
    @dg.op(
        name=name,
        description=description,
        ins={"ready": dg.In(dg.Nothing)},
        out=dg.Out(dg.Nothing),
        required_resource_keys={"workflow"},
    )
    def run_step(context: dg.OpExecutionContext) -> None:
        counts = join_pass(*_place(context)).carry_out(body)
        context.add_output_metadata(dict(sorted(counts.items())))

    return run_step


def _place(context: dg.OpExecutionContext) -> tuple[WorkflowRun, str, str]:
    """Workflow, batch key and run id: all that a step is told."""
    return context.resources.workflow, context.partition_key, context.run_id


@dg.op(out=dg.Out(dg.Nothing), required_resource_keys={"workflow"})
def open_batch(context: dg.OpExecutionContext) -> None:
    """Open a pass: everything due at this instant of the database is advanced by it."""
    open_pass(*_place(context))


reconcile = _step("reconcile", reconcile_step, "Take work back from dead workers; look up effects of unknown outcome.")
execute = _step("execute", execute_step, "Start released effects and send each once under its key.")
extract = _step("extract", extract_step, "Ask the model for proposals; keep what it said; seal what it proposed.")
validate = _step("validate", validate_step, "Judge evidence, permissions, limits and the records a proposal rests on.")
assess = _step("assess", assess_step, "Take claims, find the risk tier; release, ask people, or refuse.")
request_approval = _step("request_approval", request_approval_step, "Build the review document once and ask reviewers.")
compensate = _step("compensate", compensate_step, "Undo, in reverse order, what a failed proposal had already done.")


@dg.op(ins={"ready": dg.In(dg.Nothing)}, required_resource_keys={"workflow"}, out=dg.Out(dg.Nothing))
def close_batch(context: dg.OpExecutionContext) -> None:
    """Repeat the pass until nothing is due, then report; fails while the batch holds an open dead letter."""
    report(context, close_step(join_pass(*_place(context)), STEPS))


@dg.graph
def process_batch() -> None:
    """Advance every request of a batch as far as it may go now. Running it again is always safe."""
    done = open_batch()
    done = reconcile(ready=done)
    done = execute.alias("execute_released")(ready=done)
    for step in (extract, validate, assess, request_approval, execute, compensate, close_batch):
        done = step(ready=done)
