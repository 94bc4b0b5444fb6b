"""Undoing what came late: under the undo's own key, as a person asked, whatever the request has come to meanwhile."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import sqlalchemy as sa

from ops.asking import ask, may_repeat, unanswered
from ops.batch import LEASE_MARGIN, Batch, Counts
from ops.compensate import BACKWARD
from ops.parking import BACKOFF_CAP, PAUSE_WAIT
from ops.sending import Sender, outcome_of
from policies.attempts import MAX_ATTEMPTS, after_failure
from policies.compensation import Undo, recorded_undo
from policies.effects import EffectState
from policies.errors import DefinitionError
from policies.outcomes import Done, Refused
from policies.reconciliation import Verdict, after_absence
from policies.refusals import WAITS, Refusal
from policies.retries import backoff
from resources.adapters.outcome import call
from resources.failpoints import BACKWARD as POINTS
from resources.failpoints import reach
from resources.store.claim import Lease, release
from resources.store.contention import again_when_contended
from resources.store.effects import Outcome, Start, Started, record_outcomes, report_late, start_effects
from resources.store.engine import transaction
from resources.store.late_undos import claim_late_undo, late_undos, settle_late_undo
from resources.store.moves import RETRY_FOR


def undo_late(batch: Batch) -> Counts:
    """Undo late effects of which an operator wants it, one request after the other; there are never many."""
    counts = Counts()
    with Sender(batch, BACKWARD) as sender:
        while batch.time_left():
            claimed = claim_late_undo(
                batch.engine, workflow=batch.workflow.name, batch=batch.key, length=batch.lease_length
            )
            if claimed is None:
                break
            lease, request_id = claimed
            with transaction(batch.engine) as connection:
                rows = late_undos(connection, lease.token, request_id)
            waiting: set[int] = set()
            for row in rows:  # the last intent first; one that is still open holds back those before it
                done = (
                    _undo(batch, sender, lease, row)
                    if row.ordinal not in waiting
                    else _wait(batch, lease, row, PAUSE_WAIT)
                )
                counts["late_undone"] += done
                if not done:
                    waiting.add(row.ordinal)
            with transaction(batch.engine) as connection:
                release(connection, lease, [request_id])
            batch.beat()
    return +counts


def _undo(batch: Batch, sender: Sender, lease: Lease, row: Any) -> bool:
    """Carry one undo on from where it stands; whether it is done now."""
    unknown = row.undo_state == EffectState.UNKNOWN
    if row.attempts >= MAX_ATTEMPTS + unknown:  # one more for a look-up, which changes nothing and may settle it
        return _settle(batch, lease, row, None, f"{row.attempts} attempts failed, or workers died on them")
    name = row.recovery["undo"]
    entry = batch.workflow.catalogue.entries.get(name)
    try:
        if entry is None:
            raise DefinitionError(f"{name} is no longer in the catalogue")
        undo = recorded_undo(entry.action_type.model, row.recovery["parameters"], row.reference)
    except DefinitionError as error:
        return _settle(batch, lease, row, None, str(error))
    if unknown:
        return _look_up(batch, sender, lease, row, name)
    if row.undo_state == EffectState.DONE:
        return _settle(batch, lease, row, None)
    return _send(batch, sender, lease, row, undo)


def _send(batch: Batch, sender: Sender, lease: Lease, row: Any, undo: Undo) -> bool:
    name = undo.action.action_type.name
    adapter, provider = sender.adapter(name), batch.workflow.catalogue.entries[name].adapter
    start = Start(row.request_id, row.ordinal, undo.parameters_hash, {"undo": None}, "compensation", row.intent)
    started = _start(batch, lease, provider, start)
    if started.refusal is not None:
        refusal = Refusal(started.refusal)
        if refusal in WAITS:
            return _wait(batch, lease, row, timedelta(seconds=started.wait_seconds) or PAUSE_WAIT)
        return _settle(batch, lease, row, None, f"not started: {refusal}")
    if lease.seconds_left() < adapter.semantics.timeout.total_seconds() + LEASE_MARGIN:
        unsent = Outcome(row.request_id, row.ordinal, started.key, EffectState.INTENDED)
        return _settle(batch, lease, row, unsent)
    reach(POINTS.calling)
    told = call(adapter, undo.action, started.key)
    reach(POINTS.answered)
    return _settle(batch, lease, row, outcome_of(started, told))


@again_when_contended
def _start(batch: Batch, lease: Lease, provider: str, start: Start) -> Started:
    with transaction(batch.engine) as connection:
        [started] = start_effects(connection, lease.token, provider, [start])
    return started


def _look_up(batch: Batch, sender: Sender, lease: Lease, row: Any, name: str) -> bool:
    base = (row.request_id, row.ordinal, row.undo_key)
    answer = ask(sender, name, row.undo_key)
    if isinstance(answer, Done):
        done = Outcome(*base, EffectState.DONE, answer.reference, answer.result)
        return _settle(batch, lease, row, done)
    if isinstance(answer, Refused):
        return _settle(batch, lease, row, Outcome(*base, EffectState.REFUSED, error=f"{answer.code}: {answer.reason}"))
    if answer is not None:
        why, after = unanswered(answer)
        return _failed(batch, lease, row, why, after)
    semantics = sender.adapter(name).semantics
    absence = after_absence(semantics, since_first=row.since_first, since_last=row.since_last)
    if absence.verdict is Verdict.WAIT:
        return _wait(batch, lease, row, absence.wait)
    if absence.verdict is Verdict.SEND_AGAIN:
        again = Outcome(*base, EffectState.INTENDED, result=may_repeat(semantics))
        spent = after_failure(row.attempts) is None
        return _settle(batch, lease, row, again, "sent again and again, and nothing shows of it" if spent else "")
    return _settle(batch, lease, row, None, f"{row.undo_key} may have been done, and the provider cannot tell")


@again_when_contended
def _wait(batch: Batch, lease: Lease, row: Any, wait: timedelta) -> bool:
    with transaction(batch.engine) as connection:
        settle_late_undo(connection, lease.token, row.key, "wait", wait=wait)
    return False


@again_when_contended
def _failed(batch: Batch, lease: Lease, row: Any, why: str, after: float) -> bool:
    with transaction(batch.engine) as connection:
        _try_later(connection, batch, lease, row, why, after)
    return False


def _try_later(
    connection: sa.Connection, batch: Batch, lease: Lease, row: Any, why: str, after: float, *, uncertain: bool = False
) -> None:
    """An attempt failed: wait for the next one, or leave it to a person when it was the last."""
    used = after_failure(row.attempts, uncertain=uncertain)
    if used is None:
        given_up = f"{why} (attempt {MAX_ATTEMPTS} of {MAX_ATTEMPTS})"
        settle_late_undo(connection, lease.token, row.key, "given_up", why=given_up)
        return
    base = timedelta(seconds=batch.run.backoff_seconds)
    wait = backoff(used, base=base, cap=BACKOFF_CAP, uniform=batch.uniform()) + timedelta(seconds=after)
    if not uncertain and row.since_asked + wait > RETRY_FOR:
        given_up = (
            f"{why} (the next try, in {wait.total_seconds():.0f} s, would be more than a day after it was asked for)"
        )
        settle_late_undo(connection, lease.token, row.key, "given_up", why=given_up)
        return
    settle_late_undo(connection, lease.token, row.key, "failed" if used > row.attempts else "wait", wait=wait)


@again_when_contended
def _settle(batch: Batch, lease: Lease, row: Any, outcome: Outcome | None, given_up: str = "") -> bool:
    """Record the outcome of a call or a look-up, and what follows for the late effect."""
    with transaction(batch.engine) as connection:
        if outcome is not None and not record_outcomes(connection, lease.token, [outcome]):
            report_late(connection, [outcome])  # the lease was lost, and whoever has it now looks the undo up
            return False
        if given_up or (outcome is not None and outcome.state is EffectState.REFUSED):
            why = given_up or f"refused: {outcome.error if outcome else ''}"
            settle_late_undo(connection, lease.token, row.key, "given_up", why=why)
        elif outcome is None or outcome.state is EffectState.DONE:
            settle_late_undo(connection, lease.token, row.key, "done")
            return True
        elif outcome.error is None:  # not sent in time, or to be sent again
            settle_late_undo(connection, lease.token, row.key, "wait", wait=PAUSE_WAIT)
        else:
            uncertain = outcome.state is EffectState.UNKNOWN
            after = outcome.retry_after or 0.0
            _try_later(connection, batch, lease, row, outcome.error, after, uncertain=uncertain)
    return False
