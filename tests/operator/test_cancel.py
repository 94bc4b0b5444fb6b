"""Cancelling: one conditional update decides against execution; what was done is undone, and the answer says which."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ops.extract import extract
from policies.effects import EffectState
from policies.errors import NotPermitted, NotPossibleNow, RequestRefused, VoteRefused
from policies.proposals import Evidence, Proposal, propose
from resources.store.effects import Outcome, record_outcomes
from resources.store.engine import Duty, engine_for, transaction
from resources.store.operator import Cancelled, cancel
from resources.store.pauses import Scope
from tests.operator.desk import Desk
from tests.ops import toy
from tests.ops.passes import Shop, refund
from tests.ops.tills import Hook, HookedTill

WITH_CLAIM = (
    toy.POLICY.replace("tiers:", "tiers:\n  - {tier: critical, claim: order, because: claimed before}")
    + "claims: {order: [order.refund.order_id]}\n"
)


def as_received(shop: Shop) -> None:
    """Accepted, and nothing else."""
    shop.queue({"one": refund("80.00")})


def as_proposal_ready(shop: Shop) -> None:
    """Proposed, not judged."""
    shop.queue({"one": refund("80.00")})
    shop.run(extract)


def as_awaiting_approval(shop: Shop) -> None:
    """Asked about."""
    shop.queue({"one": refund("80.00")})
    shop.run()


def as_executing(shop: Shop) -> None:
    """Released by a vote, not begun."""
    as_awaiting_approval(shop)
    shop.vote("one")


def as_needs_review(shop: Shop) -> None:
    """The model abstained."""
    shop.queue({"one": refund(say="abstain")})
    shop.run()


def as_dead_lettered(shop: Shop) -> None:
    """Parked before anything was proposed."""
    model = shop.workflow.extractor
    shop.define(extractor=failing)
    shop.queue({"one": refund("80.00")})
    shop.run()
    shop.define(extractor=model)


def failing(_request: toy.RefundRequest) -> Any:
    """A model that cannot."""
    raise ValueError("no idea")


failing.deterministic = True  # type: ignore[attr-defined]  # extractors carry their traits as attributes

SITUATIONS = [as_received, as_proposal_ready, as_awaiting_approval, as_executing, as_needs_review, as_dead_lettered]


@pytest.mark.parametrize("situation", SITUATIONS)
def test_before_any_effect_it_ends(shop: Shop, desk: Desk, situation: Callable[[Shop], None]) -> None:
    """In each state it is cancelled at once, frees claims, approval and case, and no later run does anything for it."""
    shop.set_policy(WITH_CLAIM)
    situation(shop)
    assert shop.states() == {"one": situation.__name__.removeprefix("as_")}
    assert desk.cancel("one") is Cancelled.CANCELLED
    assert shop.states() == {"one": "cancelled"}
    assert shop.request("one").reason == "cancelled: told so by the customer"
    assert shop.rows("select * from claims") == desk.open_cases() == []
    assert shop.rows("select * from approvals_v where outcome = 'open'") == []
    shop.run_again(2)
    assert shop.calls() == []
    assert shop.states() == {"one": "cancelled"}
    assert shop.events("one")[-1] == "request.cancelled"
    shop.assert_ledger_intact()


def test_what_is_cancelled_takes_no_vote(shop: Shop, desk: Desk) -> None:
    """The approval request is resolved with it."""
    as_awaiting_approval(shop)
    desk.cancel("one")
    with pytest.raises(VoteRefused, match="already resolved"):
        shop.vote("one")


def test_a_claim_that_is_freed_can_be_taken_by_another(shop: Shop, desk: Desk) -> None:
    """A cancelled request does not block an equal one, and an executed one still does."""
    shop.set_policy(WITH_CLAIM)
    shop.queue({"one": refund("80.00")})
    shop.run()
    desk.cancel("one")
    shop.queue({"two": refund("80.00"), "three": refund("80.00")})
    shop.run()
    assert sorted(state for name, state in shop.states().items() if name != "one") == ["awaiting_approval", "rejected"]


def test_between_claim_and_start_the_start_is_refused(shop: Shop, desk: Desk) -> None:
    """A worker that holds the lease already cannot start what was cancelled meanwhile."""
    as_executing(shop)
    lease = desk.claimed()
    assert desk.cancel("one") is Cancelled.CANCELLED
    assert desk.start(lease, desk.first_start("one")).refusal == "lease_lost"
    assert shop.rows("select * from effects") == []


def test_what_was_cancelled_while_under_way_is_not_started_again(shop: Shop, desk: Desk) -> None:
    """The effect turns out not sent; the worker that still holds the lease may not start it anew."""
    as_executing(shop)
    lease, start = desk.claimed(), desk.first_start("one")
    shop.execute("update requests set rechecked_until = clock_timestamp() + interval '30 s'")
    started = desk.start(lease, start)
    assert started.refusal is None
    assert desk.cancel("one") is Cancelled.UNCERTAIN
    not_sent = Outcome(start.request_id, start.ordinal, started.key, EffectState.INTENDED)
    with transaction(engine_for(Duty.WORKER, shop.url)) as connection:
        record_outcomes(connection, lease.token, [not_sent])
    assert desk.start(lease, start).refusal == "cancel_requested"


def reserved(shop: Shop, desk: Desk) -> None:
    """The reservation is done, the refund held back."""
    shop.set_policy(WITH_CLAIM)
    shop.queue({"one": refund(say="saga")})
    shop.run(extract)  # so that the action types are known
    desk.pause(Scope.ACTION_TYPE, "order.refund")
    shop.run()
    assert desk.effect("stock.reserve").state == "done"


def test_after_an_effect_it_is_undone_and_says_so(shop: Shop, desk: Desk) -> None:
    """The reservation is undone under its own key, the refund never sent; the claim is freed when nothing stands."""
    reserved(shop, desk)
    assert desk.cancel("one") is Cancelled.COMPENSATING
    assert shop.states() == {"one": "compensating"}
    assert len(shop.rows("select from claims")) == 1
    shop.run()
    assert shop.states() == {"one": "compensated"}
    assert shop.request("one").reason == "cancelled: told so by the customer"
    assert (len(shop.effects("stock.unreserve")), shop.calls()) == (1, [])
    assert shop.rows("select from claims") == []
    shop.assert_ledger_intact()


def test_why_it_is_undone_outlasts_what_it_waits_for(shop: Shop, desk: Desk) -> None:
    """A pause, a lost answer or a breaker met on the way back does not become the reason of the end."""
    reserved(shop, desk)
    desk.cancel("one")
    desk.pause(Scope.EVERYTHING)
    shop.run()
    assert shop.request("one").reason == "cancelled: told so by the customer; waits: not started: paused"
    shop.run_again()
    desk.resume(Scope.EVERYTHING)
    toy.set_mood(shop.till, "lose the answer", "stock.unreserve")
    shop.run()
    shop.run_again()
    assert (shop.states(), shop.request("one").reason) == ({"one": "compensated"}, "cancelled: told so by the customer")


def test_after_what_cannot_be_undone_it_is_too_late(shop: Shop, desk: Desk) -> None:
    """Past the pivot a request only goes forward: the refusal says so and changes nothing."""
    shop.queue({"one": refund(say="saga")})
    shop.run(extract)
    desk.pause(Scope.ACTION_TYPE, "customer.tell")
    shop.run()
    before = shop.events("one")
    with pytest.raises(NotPossibleNow, match="too late to cancel"):
        desk.cancel("one")
    assert shop.events("one") == before
    desk.resume(Scope.ACTION_TYPE, "customer.tell")
    shop.run()
    assert shop.states() == {"one": "completed"}


@pytest.mark.parametrize("moment", ["before", "after"])
def test_while_a_reversible_effect_is_under_way_it_is_undone_afterwards(shop: Shop, desk: Desk, moment: str) -> None:
    """Nobody knows yet: no other effect starts, and once it is done it is undone in the same run."""
    answers: list[Cancelled] = []

    def stop(key: str) -> None:
        if key.endswith("stock.reserve:1"):
            answers.append(desk.cancel("one"))

    hooks: dict[str, Hook] = {moment: stop}
    shop.hooked(HookedTill, **hooks)
    shop.queue({"one": refund(say="saga")})
    shop.run()
    assert answers == [Cancelled.UNCERTAIN]
    assert shop.states() == {"one": "compensated"}
    assert shop.request("one").reason == "cancelled on request"
    assert (shop.calls(), len(shop.effects("stock.unreserve"))) == ([], 1)
    shop.assert_ledger_intact()


def reserve_alone(request: toy.RefundRequest) -> Proposal:
    """A proposal that can be undone as a whole."""
    order = Evidence("order_id", "order_id", request.order_id)
    return Proposal((propose(toy.Reserve, order_id=request.order_id, evidence=[order]),))


def test_cancelled_during_its_last_effect_it_does_not_complete(shop: Shop, desk: Desk) -> None:
    """The cancellation is honoured although nothing is left to start: what was done is undone."""
    shop.define(extractor=reserve_alone)
    shop.hooked(before=lambda key: key.endswith("stock.reserve:1") and desk.cancel("one"))
    shop.queue({"one": refund()})
    shop.run()
    assert shop.states() == {"one": "compensated"}
    assert (len(shop.effects("stock.reserve")), len(shop.effects("stock.unreserve"))) == (1, 1)


def test_cancelled_during_the_pivot_it_goes_on(shop: Shop, desk: Desk) -> None:
    """What cannot be undone was under way: it is done, so the rest is done as well."""
    shop.hooked(before=lambda key: key.endswith("order.refund:1") and desk.cancel("one"))
    shop.queue({"one": refund(say="saga")})
    shop.run()
    assert shop.states() == {"one": "completed"}
    assert (len(shop.effects()), len(shop.effects("customer.tell")), shop.effects("stock.unreserve")) == (1, 1, [])


def test_cancelled_while_the_provider_refuses_nothing_is_left(shop: Shop, desk: Desk) -> None:
    """Where the effect under way turns out not done, the request is cancelled."""
    toy.set_mood(shop.till, "refuse")
    shop.hooked(before=lambda _key: desk.cancel("one"))
    shop.queue({"one": refund()})
    shop.run()
    assert shop.states() == {"one": "cancelled"}


@pytest.mark.parametrize(("happened", "state"), [(True, "compensated"), (False, "cancelled")])
def test_an_unknown_effect_is_looked_up_first(shop: Shop, desk: Desk, happened: bool, state: str) -> None:
    """Its outcome decides: found, it is undone; absent, nothing is sent any more."""
    shop.define(extractor=reserve_alone)
    if happened:
        toy.set_mood(shop.till, "lose the answer", "stock.reserve")
    else:
        shop.hooked(before=lose)
    shop.queue({"one": refund()})
    shop.run()
    assert desk.effect("stock.reserve").state == "unknown"
    assert desk.cancel("one") is Cancelled.UNCERTAIN
    shop.age_effects()
    shop.run_again(2)
    assert shop.states() == {"one": state}
    assert len(shop.effects("stock.unreserve")) == happened
    assert len(shop.calls("stock.reserve")) == happened
    assert shop.rows("select * from claims") == []


def lose(_key: str) -> None:
    """The call never reaches the till."""
    raise TimeoutError("no answer")


def test_asked_twice_it_answers_the_same(shop: Shop, desk: Desk) -> None:
    """A repeated cancellation changes nothing and adds nothing to the story."""
    reserved(shop, desk)
    shop.queue({"two": refund("80.00", "A2")})
    shop.run()
    for name, answer in (("one", Cancelled.COMPENSATING), ("two", Cancelled.CANCELLED)):
        assert desk.cancel(name) is answer
        told = shop.events(name)
        assert desk.cancel(name) is answer
        assert shop.events(name) == told


def test_asked_twice_while_uncertain_it_answers_the_same(shop: Shop, desk: Desk) -> None:
    """The wish is noted once."""
    toy.set_mood(shop.till, "lose the answer")
    shop.queue({"one": refund()})
    shop.run()
    assert {desk.cancel("one"), desk.cancel("one")} == {Cancelled.UNCERTAIN}
    assert shop.events("one").count("request.cancel_requested") == 1


def test_only_its_initiator_or_an_operator_may(shop: Shop, desk: Desk) -> None:
    """A stranger is refused; who submitted it may, but not once it is parked as a dead letter."""
    as_awaiting_approval(shop)
    stranger = desk.signed_in("sue", ["lead", "clerk"])
    with pytest.raises(NotPermitted, match="sue may not cancel"):
        desk.cancel("one", as_=stranger)
    assert shop.states() == {"one": "awaiting_approval"}
    initiator = desk.sign_in(shop.clerk)
    assert desk.cancel("one", as_=initiator) is Cancelled.CANCELLED


def test_a_dead_letter_is_the_operators(shop: Shop, desk: Desk) -> None:
    """Its initiator cannot take it out of an operator's hands."""
    as_dead_lettered(shop)
    with pytest.raises(NotPermitted):
        desk.cancel("one", as_=desk.sign_in(shop.clerk))
    assert desk.cancel("one") is Cancelled.CANCELLED


def test_what_has_ended_is_not_cancelled(shop: Shop, desk: Desk) -> None:
    """Completed, rejected: the refusal names the state."""
    shop.queue({"done": refund(), "huge": refund("800.00")})
    shop.run()
    with pytest.raises(NotPossibleNow, match="completed"):
        desk.cancel("done")
    with pytest.raises(NotPossibleNow, match="rejected"):
        desk.cancel("huge")


def test_an_unknown_request_is_refused(shop: Shop, desk: Desk) -> None:
    """An id that means nothing is told so."""
    with pytest.raises(RequestRefused, match="no such request"):
        cancel(shop.url, desk.session, desk.session.principal_id, "no reason")


def test_a_reason_is_needed(shop: Shop, desk: Desk) -> None:
    """It stands in the ledger, so it is neither empty nor a book."""
    as_received(shop)
    for reason in ("", " ", "x" * 501):
        with pytest.raises(RequestRefused, match="reason"):
            cancel(shop.url, desk.session, desk.id("one"), reason)
