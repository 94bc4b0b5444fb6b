"""The agentbarrier suite against our engine on a real PostgreSQL, and agentack on the ledger that the suite leaves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from agentbarrier import ApprovalBarrierProfile, SuiteResult

from resources.store.engine import close_engines
from tests.conformance.barrier_adapter import FailsafeAdapter
from tests.conformance.grouping import decided_apart
from tests.conformance.house import House
from tests.conformance.story import Story
from tests.conformance.suite import PER_ACTION, RUN_WIDE, findings, verified
from tests.conformance.trace import demanded, judged, trace_of
from tests.postgres import Database, Server

SCENARIOS = 11


@dataclass
class Verified:
    """The engine after the suite, and what the suite says of it."""

    adapter: FailsafeAdapter
    profile: ApprovalBarrierProfile
    result: SuiteResult

    def stories(self) -> list[Story]:
        """The ledger of every request that the suite brought about."""
        return [story for run in self.adapter.runs for story in run.stories()]


@pytest.fixture(scope="module", params=ApprovalBarrierProfile)
def suite(
    request: pytest.FixtureRequest, server: Server, migrated: Database, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Verified]:
    """The whole suite in one approval profile, on a store of its own."""
    with server.database(template=str(migrated.superuser.database)) as database:
        adapter = FailsafeAdapter(House(database, tmp_path_factory.mktemp("suite")))
        yield Verified(adapter, request.param, verified(adapter, profile=request.param))
        close_engines()


def test_every_scenario_passes_and_none_is_skipped(suite: Verified) -> None:
    """Eleven of eleven, with strict skips, in each approval profile."""
    result = suite.result
    assert findings(result) == {}
    assert (len(result.results), result.passed_count, result.skipped_count) == (SCENARIOS, SCENARIOS, 0)
    assert (result.passed, result.strict_skips, result.approval_profile) == (True, True, suite.profile)


def test_the_provider_is_called_again_only_where_a_look_up_allowed_it(suite: Verified) -> None:
    """By the provider's own list of calls, one key was used twice: that of the effect which was found absent."""
    repeated = [
        run.actions[0].action_id.split(":")[1]
        for run in suite.adapter.runs
        for times in Counter(run.books.calls).values()
        if times > 1
    ]
    assert repeated == ["reconcile-not-committed"]


def test_what_the_suite_leaves_in_the_ledger_passes_as_a_trace(suite: Verified, tmp_path: Path) -> None:
    """Every request that ended passes agentack; the two whose effect nobody could find out about are incomplete."""
    verdicts: dict[bool, Counter[str]] = {True: Counter(), False: Counter()}
    for story in suite.stories():
        verdicts[story.ended][judged(trace_of(story), tmp_path, demanded(story)).status] += 1
    assert verdicts == {True: {"PASS": 13}, False: {"INCOMPLETE": 2}}


def test_requests_of_their_own_hold_each_action_and_not_the_run(house: House) -> None:
    """Where what may go on by itself is a request of its own, each action keeps its barrier and the run has none."""
    apart = FailsafeAdapter(house, decided_apart)
    gated = ("approval_hold", "parallel_barrier", "delegation", "audit_receipts")
    assert findings(verified(apart, *gated, profile=PER_ACTION)) == {}
    assert findings(verified(apart, "parallel_barrier", profile=RUN_WIDE)) == {"parallel_barrier": "AB010"}
