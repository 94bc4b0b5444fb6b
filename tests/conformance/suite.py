"""The agentbarrier suite as we run it."""

from __future__ import annotations

from agentbarrier import AgentAdapter, ApprovalBarrierProfile, RunnerOptions, SuiteResult, SuiteRunner

RUN_WIDE, PER_ACTION = ApprovalBarrierProfile.RUN_WIDE, ApprovalBarrierProfile.PER_ACTION


def verified(
    adapter: AgentAdapter, *scenarios: str, profile: ApprovalBarrierProfile = ApprovalBarrierProfile.RUN_WIDE
) -> SuiteResult:
    """What the suite says of an adapter in all scenarios or these; a skipped scenario counts as a failed one."""
    options = RunnerOptions(
        settle_seconds=0.2,
        operation_timeout_seconds=20,
        tool_timeout_seconds=0.1,
        strict_skips=True,
        scenarios=scenarios or None,
        approval_profile=profile,
    )
    return SuiteRunner(options).verify_sync(adapter)


def findings(result: SuiteResult) -> dict[str, str]:
    """What did not pass: the code of each scenario's finding, or the error that ended it."""
    return {
        one.scenario_id: one.finding.code if one.finding else f"{one.status.value}: {one.detail}"
        for one in result.results
        if one.status.value != "passed"
    }
