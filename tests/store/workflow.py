"""The workflow that store and console tests submit to: refunds of orders, as a user would write it."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from policies.actions import Action, Authority, Request, Untrusted
from policies.batches import daily
from policies.money import Money
from policies.outcomes import Done, Semantics
from policies.proposals import Abstention, Evidence, Proposal, propose
from resources.adapters.base import Adapter
from resources.workflow import Workflow


class RefundRequest(Request):
    """Somebody wants an order refunded."""

    order_id: str
    amount: str
    message: Annotated[str, Untrusted] = ""


class Refund(Action, name="order.refund", reversible=False, sensitivity="financial"):
    """Pay an order's amount back."""

    order_id: Annotated[str, Authority()]
    amount: Annotated[Money, Authority()]


class Payments(Adapter):
    """A provider that does nothing: what is tested here never reaches it."""

    semantics = Semantics(honours_key=timedelta(days=1), lookup=True)
    url: str = "https://payments.example"

    def execute(self, action: Refund, key: str) -> Done:
        """Must not be called."""
        raise AssertionError(f"{key} reached the provider with {action}")


def extract(request: RefundRequest) -> Proposal | Abstention:
    """The refund that the request states, or an abstention where it states no amount."""
    if request.amount == "?":
        return Abstention("no amount is stated")
    return Proposal(
        (
            propose(
                Refund,
                evidence=(
                    Evidence("order_id", "order_id", request.order_id),
                    Evidence("amount", "amount", request.amount),
                ),
                order_id=request.order_id,
                amount=request.amount,
            ),
        )
    )


refunds = Workflow(
    name="refunds",
    version="1",
    request=RefundRequest,
    actions={Refund: Payments()},
    extractor=extract,
    policy="policy.yaml",
    batches=daily(since="2026-01-01"),
)
