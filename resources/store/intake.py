"""Intake: authenticate, check, store, acknowledge. A bad row is reported and stops no other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from policies.errors import NotAuthenticated, OperationConflict, RequestRefused
from resources.database_url import database_url as default_database_url
from resources.store.engine import Duty, engine_for, sqlstate, transaction, translated
from resources.store.isolation import write_in_halves
from resources.store.migrate import require_known_revision
from resources.store.queries import query
from resources.store.rows import AcceptableRow, RowProblem, check_row

if TYPE_CHECKING:
    from resources.workflow import Workflow

CHUNK: Final = 500
"""Rows a transaction: large enough that the commit costs little, small enough to show progress."""

_CONFLICT = "was used before with another payload or subject; use a new operation_id"


@dataclass(frozen=True, slots=True)
class Receipt:
    """The acknowledgement of one row. `replayed`: it was in already, exactly like this; nothing was stored again."""

    operation_id: str
    request_id: UUID
    batch_key: str
    received_at: datetime
    replayed: bool


@dataclass(frozen=True, slots=True)
class Submission:
    """What became of the rows: receipts for those that are in, problems for those that are not."""

    receipts: list[Receipt] = field(default_factory=list)
    problems: list[RowProblem] = field(default_factory=list)

    def raise_for_problems(self) -> None:
        """Raise if a row is not in; the other rows are in all the same.

        Raises:
            OperationConflict: an operation_id is in use with another payload or subject.
            RequestRefused: a row is wrong otherwise.
        """
        if self.problems:
            first = self.problems[0]
            rows = len({problem.row for problem in self.problems})
            raise (OperationConflict if any(problem.conflict for problem in self.problems) else RequestRefused)(
                f"{rows} of {rows + len(self.receipts)} rows were refused, the others are in; "
                f"first, row {first.row}: {first.field} {first.reason}"
            )


def submit_rows(
    rows: Iterable[Mapping[str, Any]], *, workflow: Workflow, principal: str, database_url: str | None = None
) -> Submission:
    """Submit rows `{"operation_id", "payload", "subject"?}` to `workflow`; repeating it stores nothing twice.

    Args:
        rows: each `payload` holds the fields of the workflow's request; `subject` says on whose behalf it is.
        workflow: whose requests they are.
        principal: the submitting principal's token, or better `dg.EnvVar("NAME")`, read when this is called.
        database_url: where the store is; default FAILSAFE_DATABASE_URL.

    Returns what is in and what is not; call `raise_for_problems()` on it where every row must be in.

    Raises:
        NotAuthenticated: the token is unknown or disabled; nothing was stored.
        StoreUnavailable: the database cannot be reached; submit the same rows again, nothing is doubled.
    """
    numbered = enumerate(rows, start=1)
    return submit(
        numbered, workflow=workflow, token=_token(principal), database_url=database_url or default_database_url()
    )


def submit(
    numbered_rows: Iterable[tuple[int, Mapping[str, Any] | RowProblem]],
    *,
    workflow: Workflow,
    token: str,
    database_url: str,
    tenant: str = "",
    chunk: int = CHUNK,
    progress: Callable[[Submission], None] | None = None,
) -> Submission:
    """Submit rows in chunks of one transaction each; `progress` is told of each chunk once it is committed.

    Each row comes with its number, such as the line of a file; one that could not even be read, as its RowProblem.
    Raises as `submit_rows` does.
    """
    engine = engine_for(Duty.INTAKE, database_url)
    whole = Submission()
    known = False
    for numbered in _chunks(iter(numbered_rows), chunk):
        acceptable, problems = _checked(numbered, workflow)
        with transaction(engine) as connection:
            if not known:  # in the first chunk's transaction, so that a wrong token leaves nothing behind
                require_known_revision(connection)
                _register(connection, workflow)
                known = True
            receipts, refused = _accept(connection, acceptable, workflow, token, tenant)
        part = Submission(receipts, sorted(problems + refused, key=lambda problem: problem.row))
        whole.receipts.extend(part.receipts)
        whole.problems.extend(part.problems)
        if progress is not None:
            progress(part)
    return whole


def _token(principal: str) -> str:
    from dagster import EnvVar  # the caller has imported it already; a command line that votes has not

    if not isinstance(principal, EnvVar):
        return principal
    token = principal.get_value()
    if not token:
        raise NotAuthenticated(
            f"the environment variable {principal.env_var_name} holds no token; set it and try again"
        )
    return token


def _chunks(items: Iterator[Any], size: int) -> Iterator[list[Any]]:
    while chunk := list(islice(items, size)):
        yield chunk


def _checked(
    numbered: Sequence[tuple[int, Mapping[str, Any] | RowProblem]], workflow: Workflow
) -> tuple[list[AcceptableRow], list[RowProblem]]:
    acceptable: list[AcceptableRow] = []
    problems: list[RowProblem] = []
    for number, row in numbered:
        checked = [row] if isinstance(row, RowProblem) else check_row(number, row, workflow.request)
        if isinstance(checked, AcceptableRow):
            acceptable.append(checked)
        else:
            problems.extend(checked)
    # The database stores a chunk in this order; its halves keep to it, so that overlapping chunks cannot deadlock.
    acceptable.sort(key=lambda row: row.operation_id)
    return acceptable, problems


def _register(connection: sa.Connection, workflow: Workflow) -> None:
    windows = workflow.batches
    connection.execute(
        sa.text("select register_workflow(:name, :kind, :zone, :since)"),
        {"name": workflow.name, "kind": windows.kind, "zone": windows.zone, "since": windows.since},
    )


def _accept(
    connection: sa.Connection, rows: Sequence[AcceptableRow], workflow: Workflow, token: str, tenant: str
) -> tuple[list[Receipt], list[RowProblem]]:
    receipts: list[Receipt] = []
    problems: list[RowProblem] = []

    def write(part: Sequence[AcceptableRow]) -> None:
        arguments = {
            "token": token,
            "workflow": workflow.name,
            "version": workflow.version,
            "tenant": tenant,
            "operation_ids": [row.operation_id for row in part],
            "subjects": [row.subject for row in part],
            "payloads": [row.payload for row in part],
            "fingerprints": [row.fingerprint for row in part],
        }
        try:
            answers = connection.execute(query("accept_requests"), arguments).all()
        except DBAPIError as error:
            if (sqlstate(error) or "").startswith("FS"):  # about the principal or the workflow, not about a row
                raise translated(error) from error
            raise
        for row, answer in zip(part, answers, strict=True):
            if answer.outcome == "conflict":
                problems.append(RowProblem(row.number, "operation_id", _CONFLICT, row.received, True))
            else:
                replayed = answer.outcome == "replayed"
                receipts.append(
                    Receipt(row.operation_id, answer.request_id, answer.batch_key, answer.received_at, replayed)
                )

    for row, reason in write_in_halves(connection, rows, write):
        problems.append(RowProblem(row.number, "", reason, row.received))
    return receipts, problems
