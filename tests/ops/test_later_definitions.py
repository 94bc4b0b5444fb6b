"""A later definition whose validators fail with any error on what an earlier one took: a person sees to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import pytest
from pydantic import AfterValidator

from ops.assess import assess
from ops.batch import Batch, Counts
from ops.extract import extract
from ops.request_approval import request_approval
from ops.validate import validate
from policies.actions import Action, Authority
from policies.proposals import Evidence, Proposal, propose
from tests.ops import toy
from tests.ops.passes import Shop, refund
from tests.ops.tills import HookedTill


def known(order: str) -> str:
    """A validator that forgot that orders may be unknown."""
    return {"A1": "A1", "A2": "A2"}[order]


class LaterRequest(toy.RefundRequest):
    """The request's schema, with a validator it had not."""

    order_id: Annotated[str, AfterValidator(known)]


@pytest.mark.parametrize(
    ("steps", "reason"),
    [
        ((), "the request does not fit its schema: its validators failed with KeyError"),
        ((extract,), "the request no longer fits its schema"),
        ((extract, validate), "the request no longer fits its schema"),
        ((extract, validate, assess), "the request no longer fits its schema"),
    ],
)
def test_a_stored_request_that_no_longer_fits_stops_no_other(
    shop: Shop, steps: tuple[Callable[[Batch], Counts], ...], reason: str
) -> None:
    """Wherever it stands when the definition changes, a person is called for it, and the run goes on."""
    shop.queue({"bad": refund(order="Z9"), "good": refund(order="A2")})
    if steps:
        shop.run(*steps)
    shop.define(request=LaterRequest)
    shop.run()
    assert shop.states() == {"bad": "needs_review", "good": "completed"}
    assert shop.request("bad").reason == reason
    shop.assert_ledger_intact()


def test_a_stored_request_that_people_are_asked_about_and_no_longer_fits_stops_no_other(shop: Shop) -> None:
    """Nobody is shown what cannot be read."""
    shop.queue({"bad": refund("80.00", order="Z9"), "good": refund("80.00", order="A2")})
    shop.run(extract, validate, assess)
    shop.define(request=LaterRequest)
    shop.run(request_approval)
    assert shop.states() == {"bad": "needs_review", "good": "awaiting_approval"}
    assert shop.count("approval_requests") == 1


class Strict:
    """What a validator of the action does is changed by `allowed`, as by an edit of its code."""

    allowed: tuple[str, ...] = ("A2", "Z9")

    @classmethod
    def check(cls, order: str) -> str:
        """Fails with an error that says nothing about the value."""
        1 / (order in cls.allowed)
        return order


class Ship(Action, name="order.ship", reversible=False):
    """Ships an order."""

    order_id: Annotated[str, Authority(record="orders"), AfterValidator(Strict.check)]


def test_a_sealed_action_that_no_longer_fits_stops_no_other(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Code of a validator is not part of the catalogue's hash, so this shows only when the action is read again."""

    def model(request: toy.RefundRequest) -> Proposal:
        evidence = [Evidence("order_id", "order_id", request.order_id)]
        return Proposal((propose(Ship, order_id=request.order_id, evidence=evidence),))

    shop.set_policy('version: "1"\nmode: live\ndecisions: {low: auto, medium: refuse, high: refuse, critical: refuse}')
    shop.define(actions={Ship: HookedTill(file=str(shop.till))}, extractor=model)
    shop.queue({"bad": refund(order="Z9"), "good": refund(order="A2")})
    shop.run(extract)
    monkeypatch.setattr(Strict, "allowed", ("A2",))
    shop.run()
    assert shop.states() == {"bad": "needs_review", "good": "completed"}
    told = "the validators of order.ship failed with ZeroDivisionError on what was proposed; make a new proposal"
    assert shop.request("bad").reason == told
