"""Step `extract`: ask the model for each received request, keep what it said, seal what it proposed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from ops.batch import Batch, Counts
from ops.drafting import REGENERATIONS, Draft, give_up_on_output, read_request, take_output
from ops.keeping import LeaseKeeper
from ops.looking_up import look_up
from ops.parallel import in_threads
from ops.parking import NO_MORE, Failed, deadly, park, wait_or_give_up
from ops.write_behind import WriteBehind
from policies.findings import Finding
from policies.proposals import Abstention, Proposal, read_output
from policies.records import records_to_fill
from policies.retries import ErrorClass
from policies.sealing import Sealed
from policies.states import Event, State
from resources.extractors.base import ExtractionFailed
from resources.extractors.base import extract as ask
from resources.failpoints import Failpoint, reach
from resources.store.claim import Lease
from resources.store.contention import again_when_contended
from resources.store.engine import transaction
from resources.store.isolation import write_in_halves
from resources.store.ledger import LedgerEvent, append
from resources.store.moves import Move, advance
from resources.store.stages import FindingsRow, OutputRow, insert_findings, insert_outputs, standing_outputs

OUTAGE_WAIT = 60.0
"""Seconds before a model is asked again whose proposal could not be sealed for want of a trusted service."""


def extract(batch: Batch) -> Counts:
    """Advance received requests to `proposal_ready`, or park what only a person can go on with."""
    counts = Counts()
    with WriteBehind() as writing:
        for lease in batch.claimed(State.RECEIVED):
            drafts = [read_request(batch.workflow, request) for request in lease.requests]
            failures = [Failed(request_id, NO_MORE, why) for request_id, why in deadly(lease)]
            killers = {failure.id for failure in failures}
            asked = [draft for draft in drafts if draft.event is None and draft.request.id not in killers]
            failures += _propose(batch, lease, asked)
            failed = {failure.id for failure in failures}
            kept = [draft for draft in drafts if draft.request.id not in failed]
            writing.do(partial(_write, batch, lease, kept, failures, counts))
    return counts


def _propose(batch: Batch, lease: Lease, drafts: Sequence[Draft]) -> list[Failed]:
    """Fill the drafts from what stands already or from the model, asked again within bounds; return failed tries."""
    with transaction(batch.engine) as connection:
        standing = standing_outputs(connection, [(draft.request.id, draft.request.revision) for draft in drafts])
    failures: list[Failed] = []
    asked: list[Draft] = []
    for draft in drafts:
        if draft.request.id in standing:
            _reuse(draft, *standing[draft.request.id])
        else:
            asked.append(draft)
    its = batch.extractor_traits
    tries = 1 if its.deterministic else 1 + REGENERATIONS
    keeper = LeaseKeeper(batch, lease)
    for _ in range(tries):
        answered: list[tuple[Draft, bytes, Proposal | Abstention | tuple[Finding, ...]]] = []
        for draft, answer in in_threads(lambda one: _ask(batch, one), asked, its.concurrency, keeper.keep):
            if isinstance(answer, bytes):
                answered.append((draft, answer, read_output(answer)))
            else:
                failures.append(_failed(draft, answer))
        failures += _seal(batch, keeper, answered)
        failed = {failure.id for failure in failures}
        asked = [draft for draft, _, _ in answered if draft.event is None and draft.request.id not in failed]
        if not asked:
            return failures
    for draft in asked:
        give_up_on_output(draft)
    return failures


def _ask(batch: Batch, draft: Draft) -> bytes | ExtractionFailed:
    reach(Failpoint.ASKING_MODEL)
    answer = ask(batch.workflow.extractor, draft.readable)
    reach(Failpoint.MODEL_ANSWERED)
    return answer


def _failed(draft: Draft, failure: ExtractionFailed) -> Failed:
    hopeless = failure.error_class is ErrorClass.PERMANENT
    return Failed(
        draft.request.id, NO_MORE if hopeless else draft.request.attempts, f"the extractor failed: {failure.reason}"
    )


def _reuse(draft: Draft, kind: str, digest: bytes | None) -> None:
    draft.reused, draft.hash = True, digest
    if kind == "proposal":
        draft.event = Event.PROPOSAL_RECORDED
    else:
        draft.park(f"the {kind} that stands for this request has to be answered by new input")


def _seal(
    batch: Batch,
    keeper: LeaseKeeper,
    answered: Sequence[tuple[Draft, bytes, Proposal | Abstention | tuple[Finding, ...]]],
) -> list[Failed]:
    """Seal what was proposed; return the tries that failed because a record to fill it from was not to be had."""
    catalogue = batch.workflow.catalogue
    to_fill = {
        draft.request.id: records_to_fill(said, catalogue) for draft, _, said in answered if isinstance(said, Proposal)
    }
    records, missing = look_up(batch, to_fill, keeper.keep)
    failures = []
    for draft, output, said in answered:
        if (lacks := missing.get(draft.request.id)) is not None:
            # Where a service is down, no attempt; a wait all the same, since the model will be asked again.
            used, wait = draft.request.attempts, OUTAGE_WAIT
            failures.append(Failed(draft.request.id, used, lacks.reason, after=wait, tried=lacks.alone))
        else:
            take_output(batch.workflow, draft, output, said, records)
    return failures


@again_when_contended
def _write(batch: Batch, lease: Lease, drafts: Sequence[Draft], failures: Sequence[Failed], counts: Counts) -> None:
    written = Counts()
    with transaction(batch.engine) as connection:

        def write(part: Sequence[Draft]) -> None:
            moved = advance(connection, [_move(draft) for draft in part], lease.token)
            kept = [draft for draft in part if draft.request.id in moved]
            insert_outputs(connection, [row for draft in kept for row in _output_rows(batch, draft)])
            insert_findings(connection, [row for draft in kept for row in _findings_rows(draft)], standing=False)
            append(connection, [_event(batch, draft) for draft in kept], batch.actor)
            written.update(_move(draft).to.value for draft in kept)

        refused = write_in_halves(connection, drafts, write)
        written.update(wait_or_give_up(connection, batch, lease, "extract", State.RECEIVED, failures))
        unstored = [(draft.request.id, why) for draft, why in refused]
        written.update(park(connection, batch, lease.token, "extract", State.RECEIVED, unstored))
        reach(Failpoint.RECORDING_PROPOSALS)
    counts.update(written)
    reach(Failpoint.PROPOSALS_RECORDED)


def _move(draft: Draft) -> Move:
    assert draft.event is not None  # every draft that is written was given its event
    return Move(
        draft.request.id, State.RECEIVED, draft.event, draft.reason, revisions=draft.revision - draft.request.revision
    )


def _output_rows(batch: Batch, draft: Draft) -> list[OutputRow]:
    its = batch.extractor_traits
    return [
        OutputRow(
            draft.request.id,
            draft.request.revision + index,
            "proposal" if isinstance(said, Sealed) else "abstention" if isinstance(said, Abstention) else "malformed",
            output,
            said.canonical if isinstance(said, Sealed) else None,
            said.hash if isinstance(said, Sealed) else None,
            its.model,
            its.prompt_version,
        )
        for index, (output, said) in enumerate(draft.outputs)
    ]


def _findings_rows(draft: Draft) -> list[FindingsRow]:
    return [
        FindingsRow(
            draft.request.id,
            draft.request.revision + index,
            draft.request.round,
            "refused",
            [asdict(finding) for finding in said],
            "untrusted",
            [],
        )
        for index, (_, said) in enumerate(draft.outputs)
        if isinstance(said, tuple)
    ]


def _event(batch: Batch, draft: Draft) -> LedgerEvent:
    its = batch.extractor_traits
    payload: dict[str, Any] = {
        "event": draft.event,
        "state": _move(draft).to,
        "revision": draft.revision,
        "proposal": draft.hash.hex() if draft.hash else None,
        "model": its.model,
        "prompt_version": its.prompt_version,
        "outputs": len(draft.outputs),
        "reused": draft.reused,
    }
    if draft.reason:
        payload["reason"] = draft.reason
    return LedgerEvent(draft.request.id, "proposal.recorded", payload)
