"""Editing what is asked: a reviewer's changes become a new revision, which somebody else decides on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from policies.edits import Change, edited
from policies.errors import RequestRefused
from policies.findings import Finding, Severity
from policies.proposals import Proposal, output_bytes
from policies.records import needed_records
from policies.sealing import Sealed, seal, unseal
from policies.validation import validate
from resources.look_ups import behind, resolve
from resources.sources import request_fields, source_hashes
from resources.store.engine import Duty, engine_for, transaction
from resources.store.operator import said
from resources.store.queries import query
from resources.store.votes import Session

if TYPE_CHECKING:
    from resources.store.inbox import Asked
    from resources.workflow import Workflow


@dataclass(frozen=True, slots=True)
class Edited:
    """The new revision that an edit made; people are asked anew about it."""

    revision: int
    proposal_hash: bytes


def edit_proposal(
    database_url: str, session: Session, asked: Asked, workflow: Workflow, changes: Sequence[Change], reason: str
) -> Edited | tuple[Finding, ...]:
    """Make these changes to what is asked, or say what refuses them; then nothing is stored.

    The new proposal is judged here by evidence, records, permissions and limits, so that the editor learns at once what
    would refuse it, and again by the next run like any other. Its editor never decides on this request again.

    Raises:
        VoteRefused: it is not asked any more, or not as it was shown; `code` says which.
        NotPermitted: this principal may not decide on it, so neither edit it.
        NotPossibleNow: an effect of the request was begun.
        RequestRefused: `workflow` is not the one it belongs to, nothing would change, or the reason is missing.
        DefinitionError: catalogue, adapter or target changed since it was proposed.
    """
    why = said("reason", reason)
    with transaction(engine_for(Duty.REVIEWER, database_url)) as connection:
        arguments = {"session": session.secret, "approval": asked.approval_id}
        standing = connection.execute(query("proposal_to_edit"), arguments).one()
    made = _made(workflow, standing, changes)
    if isinstance(made, list):
        return tuple(made)
    proposal, sealed = made
    with transaction(engine_for(Duty.REVIEWER, database_url)) as connection:
        revision: int = connection.execute(
            query("record_edit"),
            {
                "session": session.secret,
                "approval": asked.approval_id,
                "proposal_hash": asked.proposal_hash,
                "review_hash": asked.review_hash,
                "output": output_bytes(proposal),
                "canonical": sealed.canonical,
                "hash": sealed.hash,
                "reason": why,
            },
        ).scalar_one()
    return Edited(revision, sealed.hash)


def _made(
    workflow: Workflow, standing: sa.Row[Any], changes: Sequence[Change]
) -> tuple[Proposal, Sealed] | list[Finding]:
    """The edited proposal, sealed as the next revision, or everything that refuses it."""
    if standing.workflow != workflow.name or standing.workflow_version not in workflow.carried_versions:
        raise RequestRefused(
            f"the request belongs to {standing.workflow} {standing.workflow_version}; give the workflow that carries it"
        )
    request = workflow.request.model_validate_json(standing.payload)
    proposal = edited(unseal(standing.canonical, workflow.catalogue), changes)
    if not isinstance(proposal, Proposal):
        return list(proposal)
    sealed = seal(
        proposal,
        request_id=str(standing.request_id),
        revision=standing.revision + 1,
        workflow=workflow.name,
        workflow_version=standing.workflow_version,
        catalogue=workflow.catalogue,
        sources=source_hashes(request),
        records=resolve(workflow, needed_records(proposal, workflow.catalogue)),
    )
    if not isinstance(sealed, Sealed):
        return list(sealed)
    validation = validate(
        sealed,
        request_fields=request_fields(request),
        trust=workflow.request.trust(),
        roles=frozenset(standing.roles),
        policy=workflow.policy_in_force(),
        records=resolve(workflow, behind(sealed)),
        catalogue=workflow.catalogue,
    )
    return [one for one in validation.findings if one.severity is Severity.REFUSE] or (proposal, sealed)
