"""A day at a shop in which requests end in every way that they can end by themselves, by people or by a provider."""

from __future__ import annotations

from pathlib import Path

from policies.edits import Change
from resources.store.edits import Edited, edit_proposal
from resources.store.inbox import find_asked
from resources.store.votes import sign_in
from tests.operator.desk import Desk
from tests.ops import toy
from tests.ops.passes import Shop, refund
from tests.postgres import Database

REVIEWED = {"approved", "denied", "edited", "expired", "cancelled", "undone"}
"""The requests that policy wants decided by a person."""

ENDS = {
    "small": "completed",
    "lost": "completed",
    "approved": "completed",
    "edited": "completed",
    "denied": "rejected",
    "expired": "expired",
    "cancelled": "cancelled",
    "undone": "compensated",
    "too much": "rejected",
    "unknown order": "rejected",
}


def day_at_the_shop(database: Database, folder: Path) -> Shop:
    """The shop at the end of the day."""
    shop = Shop(database, folder)
    shop.queue(
        {
            "small": refund("20.00"),
            "approved": refund("80.00", say="saga"),
            "denied": refund("81.00"),
            "edited": refund("82.00", text="TOTAL 82.00 EUR\nof which returned: 60.00 EUR"),
            "expired": refund("83.00"),
            "cancelled": refund("84.00"),
            "undone": refund("85.00", say="saga"),
            "too much": refund("700.00"),
            "unknown order": refund("20.00", order="gone"),
        }
    )
    shop.run()
    shop.vote("approved")
    shop.vote("denied", vote="deny")
    _edit(shop, "edited")
    _let_expire(shop, "expired")
    Desk(shop).cancel("cancelled")
    shop.run_again(2)
    toy.set_mood(shop.till, "refuse", "order.refund")
    shop.vote("undone")
    shop.run_again(2)
    toy.set_mood(shop.till, "lose the answer", "order.refund")
    shop.queue({"lost": refund("21.00")})
    shop.run()
    toy.set_mood(shop.till, None, "order.refund")
    shop.run_again(2)
    return shop


def _edit(shop: Shop, operation_id: str) -> None:
    """Let one lead lower the amount, and another release that."""
    edda = toy.principal(shop.url, "edda", ["lead"], kind="human")
    asked = find_asked(shop.url, operation_id)
    assert asked is not None
    lower = Change("order.refund", "amount", "60.00 EUR", (("text", "60.00 EUR"),))
    made = edit_proposal(shop.url, sign_in(shop.url, edda), asked, shop.workflow, [lower], "one was kept")
    assert isinstance(made, Edited)
    shop.run()
    shop.vote(operation_id)


def _let_expire(shop: Shop, operation_id: str) -> None:
    """Let the time to decide pass."""
    shop.execute("alter table approval_requests disable trigger user")
    shop.execute(
        "update approval_requests set opened_at = opened_at - interval '3 d', expires_at = expires_at - interval '3 d'"
        " where request_id = (select id from requests where operation_id = :id)",
        id=operation_id,
    )
    shop.execute("alter table approval_requests enable trigger user")
