"""Shadow mode: every step runs, nothing is executed, and what would have happened is recorded."""

from __future__ import annotations

from tests.ops import toy
from tests.ops.passes import Shop, refund

SHADOW = toy.POLICY.replace("mode: live", "mode: shadow")


def test_nothing_is_executed_and_what_would_have_happened_is_recorded(shop: Shop) -> None:
    """Each request ends with the decision it would have had; no effect, no approval request, no call."""
    shop.set_policy(SHADOW)
    shop.queue(
        {
            "small": refund(),
            "large": refund("80.00", "A2"),
            "huge": refund("800.00", "A3"),
            "gone": refund(order="gone"),
        }
    )
    shop.run()
    assert shop.states() == {"small": "completed", "large": "completed", "huge": "completed", "gone": "rejected"}
    assert shop.request("large").reason == "shadow: would have been review"
    found = shop.rows(
        "select r.operation_id, a.mode, a.decision, a.tier from assessments a join requests r on r.id = a.request_id"
    )
    assert {tuple(row) for row in found} == {
        ("small", "shadow", "auto", "low"),
        ("large", "shadow", "review", "medium"),
        ("huge", "shadow", "refuse", "critical"),
    }
    assert shop.count("effects") == 0
    assert shop.count("approval_requests") == 0
    assert toy.calls_at(shop.till) == []
    shop.assert_ledger_intact()


def test_a_shadow_request_holds_no_claim(shop: Shop) -> None:
    """Nothing came of it, so it stands in nobody's way once the workflow is live."""
    claim = "claims: {order: [order.refund.order_id]}\ntiers:\n  - {tier: medium, claim: order, because: before}\n"
    shop.set_policy(SHADOW.replace("tiers:\n", claim))
    shop.queue({"one": refund()})
    shop.run()
    assert shop.count("claims") == 0
    shop.set_policy(toy.POLICY.replace("tiers:\n", claim))
    shop.queue({"two": refund()})
    shop.run()
    assert shop.states() == {"one": "completed", "two": "completed"}
    assert len(shop.calls()) == 1


def test_a_workflow_put_into_shadow_executes_nothing_that_was_released(shop: Shop) -> None:
    """Turning shadow on stops what waits for execution, approved or not."""
    shop.queue({"approved": refund("80.00")})
    shop.run()
    shop.vote("approved")
    shop.set_policy(SHADOW)
    shop.run()
    assert shop.states() == {"approved": "completed"}
    assert shop.request("approved").reason == "shadow: would have been review"
    assert toy.calls_at(shop.till) == []
