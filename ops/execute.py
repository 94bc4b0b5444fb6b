"""Step `execute` (and `execute_released`): carry released proposals out, each effect once."""

from __future__ import annotations

from functools import partial

from ops.batch import Batch, Counts
from ops.executing import Execution, conclude, execution, settle
from ops.judging import read_cases
from ops.parking import deadly, park, send_to_review
from ops.rechecking import recheck
from ops.refusing import refuse
from ops.sending import Direction, Sender, Sending
from policies.compensation import recovery
from policies.states import State
from resources.failpoints import FORWARD as FORWARD_POINTS
from resources.failpoints import Failpoint, reach
from resources.store.claim import Lease, release
from resources.store.contention import again_when_contended
from resources.store.effects import Start
from resources.store.effects import executions as load
from resources.store.engine import transaction


def _next(one: Execution) -> Sending | None:
    action = one.next_action()
    if action is None:
        return None
    kind = action.action_type
    start = Start(one.id, action.ordinal, action.parameters_hash, recovery(kind, action.values))
    return Sending(kind.name, action.action, start)


FORWARD = Direction(_next, settle, refuse, FORWARD_POINTS)
"""Carrying a released proposal out, in the order of its actions."""


def execute(batch: Batch) -> Counts:
    """Start and send the effects of executing requests; requests with an unknown effect are left to `reconcile`."""
    counts = Counts()
    with Sender(batch, FORWARD) as sender:
        for lease in batch.claimed(State.EXECUTING):
            counts += _execute_chunk(batch, lease, sender)
    return counts + sender.counts


def _execute_chunk(batch: Batch, lease: Lease, sender: Sender) -> Counts:
    read, counts = _read(batch, lease)
    waiting = [one for one in read if one.event(cancelled=one.row.cancel_requested) is None]
    while waiting and batch.time_left():
        going, waiting, sent_back = recheck(batch, lease, waiting)
        counts += sent_back
        sender.send(lease, going)
    sender.after(partial(_release, batch, lease))
    return counts


@again_when_contended
def _read(batch: Batch, lease: Lease) -> tuple[list[Execution], Counts]:
    """What the lease would execute, without what is parked or concluded at once."""
    with transaction(batch.engine) as connection:
        counts = park(connection, batch, lease.token, "execute", State.EXECUTING, deadly(lease))
        rows = load(connection, lease)
        cases, unreadable = read_cases(batch.run, rows)
        # What an effect was begun for must not leave the open cases: it may have to be undone.
        begun = {row.id for row in rows if row.effects}
        counts += park(
            connection, batch, lease.token, "execute", State.EXECUTING, [one for one in unreadable if one[0] in begun]
        )
        counts += send_to_review(connection, batch, State.EXECUTING, unreadable, lease.token)
        going = [execution(row, case) for row, case in cases]
        counts += conclude(connection, batch, lease, going)  # what was cancelled, or resolved by hand meanwhile
    return going, counts


@again_when_contended
def _release(batch: Batch, lease: Lease) -> None:
    with transaction(batch.engine) as connection:
        release(connection, lease, [request.id for request in lease.requests])
        reach(Failpoint.RELEASING)
    reach(Failpoint.RELEASED)
