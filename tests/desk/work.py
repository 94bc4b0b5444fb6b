"""Work that went wrong, for the operators' pages, and other requests that a desk has to show."""

from __future__ import annotations

import json
import uuid

from policies.effects import EffectState
from tests.console.test_review import document
from tests.store.released import Worker
from tests.store.requests import AskedRequest, Person


def dead_lettered(worker: Worker, operation_id: str, failure: str = "the provider refused it 5 times") -> uuid.UUID:
    """A request that was parked."""
    request_id = worker.superuser.received(worker.person("clerk"), operation_id)
    worker.superuser.move(request_id, "gave_up", "dead_lettered")
    _open_case(worker, request_id, "extract", failure)
    return request_id


def unknown_effect(worker: Worker) -> tuple[uuid.UUID, str]:
    """A request with an effect that nobody knows the outcome of, and the effect's key."""
    released = worker.released()
    [started] = worker.start(released)
    assert started.refusal is None
    worker.record(released, started, EffectState.UNKNOWN)
    worker.change(released, "lease_token = null, lease_until = null")
    return released.id, started.key


def late_effect(worker: Worker) -> str:
    """The key of an effect that happened after it was settled otherwise, with its case."""
    request_id, key = unknown_effect(worker)
    worker.superuser.run("alter table effects disable trigger user")
    worker.superuser.run(
        "update effects set state = 'late', recovery = cast(:recovery as json) where idempotency_key = :key",
        recovery='{"undo": "stock.unreserve"}',
        key=key,
    )
    worker.superuser.run("alter table effects enable trigger user")
    _open_case(worker, request_id, "late", f"{key} happened after all")
    return key


def failed_compensation(worker: Worker) -> uuid.UUID:
    """A request whose undo did not work."""
    released = worker.released(actions=("stock.reserve",))
    [started] = worker.start(released)
    worker.record(released, started, EffectState.DONE)
    worker.change(released, "lease_token = null, lease_until = null")
    worker.superuser.move(released.id, "undo_needed", "compensating")
    worker.superuser.move(released.id, "undo_failed", "compensation_failed")
    _open_case(worker, released.id, "compensate", "the stock service says: reservation is gone")
    return released.id


def low(worker: Worker, clerk: Person, operation_id: str, **asked: float) -> AskedRequest:
    """A request of the lowest tier that waits for a lead."""
    content = {**json.loads(document(order_id=operation_id)), "tier": "low"}
    made = worker.superuser.asked(clerk, operation_id, document=content, **asked)  # type: ignore[arg-type]
    worker.superuser.run("alter table approval_requests disable trigger user")
    worker.superuser.run("update approval_requests set tier = 'low' where id = :id", id=made.approval_id)
    worker.superuser.run("alter table approval_requests enable trigger user")
    return made


def _open_case(worker: Worker, request_id: uuid.UUID, step: str, failure: str) -> None:
    worker.superuser.run(
        "insert into dead_letters (request_id, step, failure, trace_id) values (:id, :step, :failure, :trace)",
        id=request_id,
        step=step,
        failure=failure,
        trace=request_id.hex,
    )
