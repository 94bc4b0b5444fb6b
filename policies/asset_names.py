"""Names of a workflow's assets, `[workflow, name]`, and of their checks."""

from __future__ import annotations

from typing import Final

REQUEST_BATCH: Final = "request_batch"
AUDIT_LEDGER: Final = "audit_ledger"
EVALUATION_METRICS: Final = "evaluation_metrics"

CHAIN_INTACT: Final = "chain_intact"
NO_DUPLICATE_EFFECTS: Final = "no_duplicate_effects"
NO_EFFECT_WITHOUT_AUTHORITY: Final = "no_effect_without_authority"
NO_OPEN_CASES: Final = "no_open_cases"
APPROVALS_ANSWERED: Final = "approvals_answered"
NO_STUCK_WORK: Final = "no_stuck_work"
NO_UNRECONCILED_UNKNOWN: Final = "no_unreconciled_unknown"
