"""Between approval and execution the world moves on: what no longer holds is asked anew, never executed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ops import sending
from ops.execute import execute
from policies.records import Record
from resources.store.principals import set_roles
from tests.ops import toy
from tests.ops.passes import Shop, refund

STRICTER = {
    "two people": ("people: 1", "people: 2"),
    "other people": ("roles: [lead]", "roles: [finance]"),
    "sooner": ("expires_after: 2d", "expires_after: 1h"),
    "refused": (
        "tier: critical, action: order.refund, over: 500.00 EUR",
        "tier: critical, action: order.refund, over: 1.00 EUR",
    ),
    "over the limit": ("limits: {order.refund: 1000.00 EUR}", "limits: {order.refund: 70.00 EUR}"),
    "not permitted": ("order.refund: [clerk]", "order.refund: [manager]"),
    "shadow": ("mode: live", "mode: shadow"),
}
WEAKER = {
    "more roles": ("roles: [lead]", "roles: [lead, finance]"),
    "longer": ("expires_after: 2d", "expires_after: 3d"),
    "automatic": ("over: 50.00 EUR", "over: 90.00 EUR"),
    "another version": ('version: "1"', 'version: "2"'),
}


def changed(old: str, new: str) -> str:
    """The toy policy with one text changed, under a new version."""
    assert old in toy.POLICY
    return toy.POLICY.replace(old, new, 1).replace('version: "1"', 'version: "2"')


@pytest.fixture
def approved(shop: Shop) -> Shop:
    """A request that a lead has released and nobody executed yet."""
    shop.queue({"one": refund("80.00")})
    shop.run()
    shop.vote("one")
    return shop


@pytest.mark.parametrize("change", STRICTER)
def test_a_stricter_policy_asks_anew_and_executes_nothing(approved: Shop, change: str) -> None:
    """The approval does not cover what policy demands now: a new round, or an end without effect."""
    approved.set_policy(changed(*STRICTER[change]))
    approved.run(execute)
    sent_back = approved.request("one")
    assert (sent_back.state, sent_back.round, sent_back.approval_id) == ("proposal_ready", 2, None)
    approved.run()
    ends = {"refused": "rejected", "over the limit": "rejected", "not permitted": "rejected", "shadow": "completed"}
    assert approved.states() == {"one": ends.get(change, "awaiting_approval")}
    assert approved.calls() == []
    assert "approval.stale" in approved.events("one")
    approved.assert_ledger_intact()


def test_the_new_round_is_released_by_new_votes_only(approved: Shop) -> None:
    """The earlier vote stays in the history and counts for nothing in the new round."""
    approved.set_policy(changed("people: 1", "people: 2"))
    approved.run()
    approved.vote("one")
    approved.run()
    assert approved.states() == {"one": "awaiting_approval"}
    approved.vote("one", "otto")
    approved.run()
    assert approved.states() == {"one": "completed"}
    assert len(approved.calls()) == 1
    assert approved.count("approval_votes") == 3


@pytest.mark.parametrize("change", WEAKER)
def test_a_weaker_policy_lets_it_go(approved: Shop, change: str) -> None:
    """What satisfied more satisfies less, and the ledger holds both versions."""
    approved.set_policy(changed(*WEAKER[change]))
    approved.run()
    assert approved.states() == {"one": "completed"}
    assert len(approved.calls()) == 1
    (event,) = approved.rows("select payload from audit_v where type = 'approval.still_satisfied'")
    assert {"approved_under": "1", "policy_version": "2"}.items() <= json.loads(event.payload).items()


def test_an_unchanged_policy_leaves_no_such_event(approved: Shop) -> None:
    """Only a policy that changed meanwhile is worth an event."""
    approved.run()
    assert "approval.still_satisfied" not in approved.events("one")


class ClosedSince(toy.Orders):
    """Orders that were all closed after the approval."""

    def find(self, key: str) -> Record | None:
        return Record("orders", key, {"order_id": key}, active=False, reason="closed this morning")


def test_a_record_that_changed_stops_the_effect(approved: Shop) -> None:
    """External preconditions are read again right before the effect."""
    approved.define(records={"orders": ClosedSince()})
    approved.run()
    one = approved.request("one")
    assert one.state == "rejected"
    assert "closed this morning" in one.reason
    assert approved.calls() == []


def test_an_initiator_who_lost_the_role_stops_the_effect(approved: Shop) -> None:
    """Permission is counted at the moment of the effect."""
    assert set_roles(approved.url, "shop", ["visitor"])
    approved.run()
    assert approved.states() == {"one": "rejected"}
    assert approved.calls() == []


def test_a_typed_rule_is_asked_again(approved: Shop) -> None:
    """A rule in Python that objects now, or fails, stops the effect as the policy file would."""

    def broken(*_: Any) -> None:
        raise KeyError("no such market")

    approved.define(rules=(broken,))
    approved.run()
    assert approved.states() == {"one": "rejected"}
    assert approved.calls() == []


def test_a_policy_that_cannot_be_read_executes_nothing(approved: Shop) -> None:
    """A mistake in the policy file stops the run and leaves everything as it was."""
    approved.set_policy("version: 1")
    with pytest.raises(Exception, match="policy"):
        approved.run()
    approved.end_leases()
    approved.set_policy(toy.POLICY)
    approved.run()
    assert approved.states() == {"one": "completed"}
    assert len(approved.calls()) == 1


def test_a_recheck_that_became_too_old_is_made_again_at_once(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a long chunk the recheck of the last may run out: they are not sent on it, and do not wait for long either."""
    monkeypatch.setattr(sending, "FIRST_GROUP", 1)
    shop.hooked(before=lambda _: shop.execute("update requests set rechecked_until = clock_timestamp()"))
    shop.queue({"one": refund(), "two": refund(order="A2")})
    counts = shop.run()
    assert counts["not_started_not_rechecked"] == 1
    assert len(shop.calls()) == 1
    shop.hooked()
    shop.run()
    assert set(shop.states().values()) == {"completed"}
