"""Try a workflow on requests: what would be proposed, found and decided. Touches neither the store nor a provider."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from policies.claims import claim_values, novel_values
from policies.findings import Finding
from policies.proposals import Abstention, Proposal, read_output
from policies.records import needed_records
from policies.risk import Assessment, Facts, assess
from policies.sealing import Sealed, seal
from policies.validation import Validation, validate
from resources.extractors.base import ExtractionFailed, extract
from resources.look_ups import behind, resolve
from resources.sources import request_fields, source_hashes

if TYPE_CHECKING:
    from policies.actions import Request
    from policies.policy import Policy
    from resources.workflow import Workflow


@dataclass(frozen=True, slots=True)
class TrialResult:
    """How far one request would get.

    `decision` is that of the policy; or `needs_review` where the model proposed nothing that can stand; or `failed`.
    """

    decision: str
    reason: str
    sealed: Sealed | None = None
    findings: tuple[Finding, ...] = ()
    validation: Validation | None = None
    assessment: Assessment | None = None


@dataclass(slots=True)
class Trial:
    """A workflow tried on one request after the other.

    The extractor is asked and trusted records are looked up; both only read. Claims are remembered from one request to
    the next, so that a duplicate within a file is seen. Every value that a rule on novelty looks at counts as new.
    """

    workflow: Workflow
    roles: frozenset[str]
    policy: Policy = field(init=False)
    _taken: dict[str, set[bytes]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.policy = self.workflow.policy_in_force()

    def run(self, request: Request, now: datetime) -> TrialResult:
        """Try one request as if it were handled at `now`."""
        output = extract(self.workflow.extractor, request)
        if isinstance(output, ExtractionFailed):
            return TrialResult("failed", f"the extractor failed: {output.reason}")
        said = read_output(output)
        if isinstance(said, Abstention):
            return TrialResult("needs_review", f"the model abstained: {said.reason}")
        sealed = self._sealed(said, request) if isinstance(said, Proposal) else said
        if not isinstance(sealed, Sealed):
            return TrialResult("needs_review", f"the model's output was refused: {sealed[0].message}", findings=sealed)
        return self._judged(sealed, request, now)

    def _sealed(self, proposal: Proposal, request: Request) -> Sealed | tuple[Finding, ...]:
        return seal(
            proposal,
            request_id=str(uuid.UUID(int=0)),
            revision=1,
            workflow=self.workflow.name,
            workflow_version=self.workflow.version,
            catalogue=self.workflow.catalogue,
            sources=source_hashes(request),
            records=resolve(self.workflow, needed_records(proposal, self.workflow.catalogue)),
        )

    def _judged(self, sealed: Sealed, request: Request, now: datetime) -> TrialResult:
        validation = validate(
            sealed,
            request_fields=request_fields(request),
            trust=type(request).trust(),
            roles=self.roles,
            policy=self.policy,
            records=resolve(self.workflow, behind(sealed)),
            catalogue=self.workflow.catalogue,
        )
        facts = Facts(now, self._claim(sealed), frozenset(novel_values(sealed, self.policy)))
        assessment = assess(sealed, validation, facts, self.policy, self.workflow.rules)
        if validation.verdict == "refused":
            reasons: Sequence[str] = [
                f"{one.code}: {one.message}" for one in validation.findings if one.severity == "refuse"
            ]
        else:
            reasons = [one.because for one in assessment.reasons]
        return TrialResult(assessment.decision, "; ".join(reasons), sealed, validation.findings, validation, assessment)

    def _claim(self, sealed: Sealed) -> frozenset[str]:
        """The kinds of claim that an earlier request of this trial holds; the others are taken now."""
        held = set()
        for kind, value in claim_values(sealed, self.policy).items():
            taken = self._taken.setdefault(kind, set())
            if value in taken:
                held.add(kind)
            taken.add(value)
        return frozenset(held)
