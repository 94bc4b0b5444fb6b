"""From a claimed request to a draft: what the model said, what became of it, and the transition it leads to."""

from __future__ import annotations

from dataclasses import dataclass, field

from pydantic import ValidationError

from policies.actions import Request
from policies.findings import Finding
from policies.proposals import Abstention, Proposal
from policies.records import ResolvedRecords
from policies.sealing import Sealed, seal
from policies.states import Event
from resources.sources import source_hashes
from resources.store.claim import ClaimedRequest
from resources.workflow import Workflow

REGENERATIONS = 2
"""How often a model is asked again after an output that could not be read or sealed; then a person is."""


@dataclass(slots=True)
class Draft:
    """One request on its way through extraction. `outputs` holds every output of the model, the last one standing."""

    request: ClaimedRequest
    model: Request | None = None
    outputs: list[tuple[bytes, Sealed | Abstention | tuple[Finding, ...]]] = field(default_factory=list)
    reused: bool = False
    """The proposal existed already, so nothing is written for it again."""
    event: Event | None = None
    reason: str | None = None
    hash: bytes | None = None

    @property
    def revision(self) -> int:
        """The revision of the output that stands."""
        return self.request.revision + max(len(self.outputs) - 1, 0)

    @property
    def readable(self) -> Request:
        """The request as its schema reads it; one that could not be read was parked before anything asked."""
        assert self.model is not None
        return self.model

    def park(self, reason: str) -> None:
        """Only a person can tell what to do with this request."""
        self.event, self.reason = Event.REVIEW_NEEDED, reason


def read_request(workflow: Workflow, request: ClaimedRequest) -> Draft:
    """The draft of a claimed request; parked at once where this code does not carry its version or cannot read it."""
    draft = Draft(request)
    if request.workflow_version not in workflow.carried_versions:
        draft.park(f"workflow version {request.workflow_version} is no longer carried here")
        return draft
    try:
        draft.model = workflow.request.model_validate_json(request.payload)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        draft.park(f"the request does not fit its schema: {'.'.join(map(str, first['loc']))}: {first['msg']}")
    except Exception as error:  # noqa: BLE001  # validators of the request class may be newer than what is stored
        draft.park(f"the request does not fit its schema: its validators failed with {type(error).__name__}")
    return draft


def take_output(
    workflow: Workflow,
    draft: Draft,
    output: bytes,
    proposal: Proposal | Abstention | tuple[Finding, ...],
    records: ResolvedRecords,
) -> None:
    """Seal what the model proposed and set the draft's event; an output that cannot stand leaves `event` None."""
    if isinstance(proposal, Proposal):
        sealed = seal(
            proposal,
            request_id=str(draft.request.id),
            revision=draft.request.revision + len(draft.outputs),
            workflow=workflow.name,
            workflow_version=draft.request.workflow_version,
            catalogue=workflow.catalogue,
            sources=source_hashes(draft.readable),
            records=records,
        )
        draft.outputs.append((output, sealed))
        if isinstance(sealed, Sealed):
            draft.event, draft.hash = Event.PROPOSAL_RECORDED, sealed.hash
    else:
        draft.outputs.append((output, proposal))
        if isinstance(proposal, Abstention):
            draft.event, draft.reason = Event.ABSTAINED, f"the model abstained: {proposal.reason}"


def give_up_on_output(draft: Draft) -> None:
    """No output of the allowed ones could stand."""
    findings = draft.outputs[-1][1]
    first = findings[0].message if isinstance(findings, tuple) else ""
    draft.park(f"the model's output was refused: {first}")
