"""A request that lacks something, and who may supply it."""

from __future__ import annotations

from typing import Annotated, Any

from policies.actions import Untrusted
from policies.proposals import Abstention, Proposal
from resources.store.inputs import Supplied, supply
from resources.store.intake import Submission, submit_rows
from resources.store.votes import Session
from tests.operator.desk import WHY, Desk
from tests.ops import toy
from tests.ops.passes import Shop

LACKING = b'{"order_id": "A1", "note": null, "precise": 1.10}'
"""What was received: nothing says how much."""


class Refunds(toy.RefundRequest):
    """The shop's request, of which the text may be missing."""

    text: Annotated[str | None, Untrusted] = None  # type: ignore[assignment]
    note: str | None = None
    precise: float = 0.0
    count: int | None = None


class Model:
    """Abstains where there is no text; counts how often it was asked."""

    def __init__(self) -> None:
        self.asked: list[Refunds] = []

    def __call__(self, request: Refunds) -> Proposal | Abstention:
        self.asked.append(request)
        return toy.toy_model(request) if request.text else Abstention("no amount is stated")


class Supplying:
    """A shop in which one request lacks its amount, the operator `olga`, and the program that submitted it."""

    def __init__(self, shop: Shop, payload: bytes = LACKING, request: type[Refunds] = Refunds) -> None:
        self.shop = shop
        self.model = Model()
        shop.define(request=request, extractor=self.model)
        self.desk = Desk(shop)
        self.initiator = self.desk.sign_in(shop.clerk)
        self.submit(payload)
        shop.run()
        assert shop.states() == {"one": "needs_review"}

    def submit(self, payload: bytes = LACKING) -> Submission:
        """Submit the request, as before or changed."""
        rows = [{"operation_id": "one", "payload": payload}]
        made = submit_rows(rows, workflow=self.shop.workflow, principal=self.shop.clerk, database_url=self.shop.url)
        self.shop.batch = made.receipts[0].batch_key if made.receipts else self.shop.batch
        return made

    def supply(self, fields: Any = None, as_: Session | None = None, reason: str = WHY) -> Supplied:
        """Add the amount, or other fields, as the initiator or somebody else."""
        given = {"text": "TOTAL 20.00 EUR"} if fields is None else fields
        request_id = self.desk.id("one")
        return supply(self.shop.url, as_ or self.initiator, request_id, self.shop.workflow, given, reason)

    def untouched(self) -> bool:
        """Nothing of an input was stored."""
        one = self.shop.request("one")
        same = (one.state, one.revision, one.supplied) == ("needs_review", 1, False)
        return same and self.shop.count("request_inputs") == 0
