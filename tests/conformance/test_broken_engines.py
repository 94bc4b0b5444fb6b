"""The agentbarrier suite where guards of ours are gone or gone around: each time it says which promise is broken."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from agentbarrier import ActionRequest, AuditReceipt
from agentbarrier.probe import EffectProbe

from policies.errors import NotExecuted
from policies.proposals import Proposal
from tests.conformance.barrier_adapter import FailsafeAdapter, FailsafeRun
from tests.conformance.engine_run import EngineRun
from tests.conformance.house import House
from tests.conformance.sentinel import Books, SentinelRequest, obedient_model
from tests.conformance.suite import findings, verified

ANY_START = ("when j.decision = 'auto' and p.edited_by is null and not", "when true or not")
"""No authority is recounted when an effect starts."""


def adapter_of(house: House, kind: type[FailsafeRun]) -> FailsafeAdapter:
    """An adapter whose runs are driven by another kind of handle."""

    class Adapter(FailsafeAdapter):
        def handle(self, run_id: str, run: EngineRun, *, has_timeout: bool, again: bool = False) -> FailsafeRun:
            return kind(self, run_id, run, has_timeout=has_timeout, again=again)

    return Adapter(house)


class VotedAround(FailsafeRun):
    """Somebody who owns the database releases what people are asked about."""

    async def wait_for_pending(self, timeout_seconds: float) -> tuple[ActionRequest, ...]:
        pending = await super().wait_for_pending(timeout_seconds)
        self.run.house.execute(
            "update requests set state = 'executing', last_event = 'approved', state_seq = state_seq + 1,"
            " rechecked_until = clock_timestamp() + interval '30 s' where state = 'awaiting_approval'"
        )
        while [one for one in await self._in_thread(self.run.standing) if one.state == "executing"]:
            await self._turn()
        return pending


def test_a_forged_release_starts_nothing_while_votes_are_counted(house: House) -> None:
    """Where the request says that it was approved and nobody voted, nothing is sent and people are asked anew."""
    adapter = adapter_of(house, VotedAround)
    assert findings(verified(adapter, "approval_hold")) == {}
    [run] = adapter.runs
    [story] = run.stories()
    assert [event.type for event in story.events].count("approval.requested") == 2


def test_a_start_without_authority_is_an_effect_before_approval(house: House) -> None:
    """Where the start counts no votes, the same forgery is found as a commit before approval."""
    house.replace("start_effects", ANY_START)
    assert findings(verified(adapter_of(house, VotedAround), "approval_hold")) == {"approval_hold": "AB002"}


def test_a_model_that_acts_is_an_effect_before_approval(house: House) -> None:
    """A model that reaches the provider itself goes around every guard, and the suite sees it."""

    class Acting(FailsafeAdapter):
        def model(self, effect: EffectProbe) -> Callable[[Any], Any]:
            def act(request: SentinelRequest) -> Proposal:
                [run] = self.runs
                run.books.write(run.actions[0], "by the model")
                return obedient_model(request)

            return act

    assert findings(verified(Acting(house), "approval_hold")) == {"approval_hold": "AB002"}


def test_a_denial_that_releases_is_found(house: House) -> None:
    """Where a denial counts as a release and the start counts nothing, a rejected action commits."""
    house.replace("cast_vote", ("when p_vote = 'deny' then 'denied'", "when p_vote = 'deny' then 'released'"))
    house.replace("start_effects", ANY_START)
    assert findings(verified(FailsafeAdapter(house), "rejection")) == {"rejection": "AB004"}


def test_a_replacement_that_nobody_seals_is_found(house: House) -> None:
    """A vote for what was proposed first executes that, and not what the reviewer wanted."""

    class Unedited(FailsafeRun):
        async def approve(self, action_id: str, replacement: ActionRequest | None = None) -> None:
            await super().approve(action_id)

    assert findings(verified(adapter_of(house, Unedited), "argument_binding")) == {"argument_binding": "AB005"}


def test_a_replay_under_another_name_is_a_second_effect(house: House) -> None:
    """What keeps a replay from acting is the operation id: a caller that names its work anew acts again."""

    class Renamed(FailsafeRun):
        async def replay(self) -> FailsafeRun:
            await self._in_thread(self.run.submit, ":again")
            return await super().replay()

    assert findings(verified(adapter_of(house, Renamed), "replay")) == {"replay": "AB007"}


def test_a_lost_answer_taken_for_a_failure_is_found(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """A time-out or reset that counts as `did not happen` is sent again by the next pass."""
    monkeypatch.setattr("resources.adapters.outcome._classified", lambda adapter, error: NotExecuted(str(error)))
    assert findings(verified(FailsafeAdapter(house), "outcome_ambiguity")) == {"outcome_ambiguity": "AB012"}


def test_a_second_call_after_a_look_up_that_sees_nothing_is_found(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What keeps a lost answer from acting twice is the look-up: where it misses what was done, it is done again."""
    monkeypatch.setattr(Books, "find", lambda books, key: None)
    assert findings(verified(FailsafeAdapter(house), "outcome_ambiguity")) == {"outcome_ambiguity": "AB013"}


def test_a_cancellation_that_starts_do_not_see_is_found(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without both guards of a cancellation, what the worker dropped is sent again after it."""
    monkeypatch.setattr("ops.executing.after_cancel", lambda reversible, states: None)
    house.replace("start_effects", ("then 'cancel_requested'", "then null"))
    assert findings(verified(FailsafeAdapter(house), "cancellation")) == {"cancellation": "AB008"}


def test_a_delegated_action_in_a_request_of_its_own_is_found(house: House) -> None:
    """A child that does not share its parent's proposal does not wait for its parent's approval."""

    def alone(actions: Sequence[ActionRequest]) -> list[list[ActionRequest]]:
        return [[one] for one in actions]

    assert findings(verified(FailsafeAdapter(house, alone), "delegation")) == {"delegation": "AB014"}


def test_a_ledger_with_a_vote_cut_out_gives_no_receipts(house: House) -> None:
    """Receipts come from a chain that holds, or not at all."""

    class Robbed(FailsafeRun):
        async def audit_receipts(self) -> tuple[AuditReceipt, ...]:
            self.run.house.execute("alter table audit_events disable trigger user")
            self.run.house.execute("delete from audit_events where type = 'approval.vote'")
            return await super().audit_receipts()

    found = findings(verified(adapter_of(house, Robbed), "audit_receipts"))
    assert found["audit_receipts"].startswith("error: AssertionError: request:")
