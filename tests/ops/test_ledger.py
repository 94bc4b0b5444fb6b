"""The ledger tells every transition of every request, in chains that verify without a gap."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest

from policies.states import TRANSITIONS, State
from resources.store.engine import Duty, engine_for, transaction
from resources.store.ledger import LedgerEvent, append
from tests.ops import toy
from tests.ops.passes import Shop, refund

ENDS = {
    "small": "completed",
    "saga": "completed",
    "approved": "completed",
    "denied": "rejected",
    "expired": "expired",
    "huge": "rejected",
    "unsure": "needs_review",
    "nonsense": "needs_review",
    "gone": "rejected",
    "declined": "failed",
    "lost": "completed",
    "hopeless": "dead_lettered",
}


def model(request: toy.RefundRequest) -> Any:
    """The toy model, which fails for one order."""
    if request.order_id == "hopeless":
        raise ValueError("no")
    return toy.toy_model(request)


model.deterministic = True  # type: ignore[attr-defined]  # extractors carry their traits as attributes


def provider(shop: Shop, key: str) -> None:
    """A till that loses one answer."""
    if shop.request("lost").id.hex in key.replace("-", ""):
        raise TimeoutError("no answer")


@pytest.fixture(scope="module")
def shop(shared_shop: Shop) -> Shop:
    """A shop with one request of every fate."""
    shop = shared_shop
    shop.define(extractor=model)
    shop.queue(
        {
            "small": refund(),
            "saga": refund("30.00", "A2", say="saga"),
            "approved": refund("80.00", "A3"),
            "denied": refund("80.00", "A4"),
            "expired": refund("80.00", "A5"),
            "huge": refund("800.00", "A6"),
            "unsure": refund(order="A7", say="abstain"),
            "nonsense": refund(order="A8", say="nonsense"),
            "gone": refund(order="gone"),
            "hopeless": refund(order="hopeless"),
            "lost": refund(order="A9"),
        }
    )
    shop.hooked(after=lambda key: provider(shop, key))
    shop.run()
    shop.hooked()
    shop.vote("approved")
    shop.vote("denied", vote="deny")
    shop.execute("alter table approval_requests disable trigger user")
    shop.execute(
        "update approval_requests a set opened_at = opened_at - interval '3 d', expires_at = clock_timestamp()"
        " from requests r where r.approval_id = a.id and r.operation_id = 'expired'"
    )
    shop.age_effects()
    shop.run_again()
    toy.set_mood(shop.till, "refuse")
    shop.queue({"declined": refund(order="B1")})
    shop.run()
    return shop


def test_every_fate_leaves_a_chain_that_verifies(shop: Shop) -> None:
    """Votes, expiries, dead letters, look-ups and refusals included."""
    assert shop.states() == ENDS
    shop.assert_ledger_intact()


def test_every_transition_is_told_once(shop: Shop) -> None:
    """The states that a request's events name, in their order, are legal steps from `received` to where it stands."""
    steps = {(state, transition.to) for (state, _), transition in TRANSITIONS.items()}
    for operation_id in ENDS:
        told = [
            payload["state"]
            for kind, payload in shop.ledger(operation_id)
            if payload.get("state")
            and not kind.startswith("case.")  # which say where the request stands, no transition
        ]
        states = [State.RECEIVED, *map(State, told)]
        assert set(pairwise(states)) <= steps, operation_id
        request = shop.request(operation_id)
        assert (states[-1], len(states)) == (request.state, request.state_seq), operation_id


def test_a_run_is_named_by_what_it_did(shop: Shop) -> None:
    """Every event says who did it and in which role."""
    told = shop.rows(
        "select distinct role, split_part(actor, ':', 1) as actor, type from audit_events where stream <> 'system'"
    )
    by_type = {row.type: (row.role, row.actor) for row in told}
    assert by_type["request.received"] == ("failsafe_intake", "principal")
    assert by_type["proposal.recorded"] == ("failsafe_worker", "run")
    assert by_type["approval.vote"] == ("failsafe_reviewer", "principal")
    assert by_type["effect.done"] == ("failsafe_worker", "provider")


def test_no_event_holds_a_secret_or_the_text_of_a_request(shop: Shop) -> None:
    """What the request says stays in the request, so that it can be erased without breaking the chain."""
    told = "".join(json.dumps(payload) for name in ENDS for _, payload in shop.ledger(name))
    assert "TOTAL" not in told
    assert shop.clerk not in told


def test_events_written_together_are_chained_in_their_order(shop: Shop) -> None:
    """Several events of one request in one call, between those of another, leave both chains intact."""
    one, other = shop.request("small").id, shop.request("gone").id
    events = [LedgerEvent(each, "request.stopped", {"n": n}) for n, each in enumerate((one, other, one, one, other))]
    with transaction(engine_for(Duty.WORKER, shop.url)) as connection:
        append(connection, events, "run:test")
    assert [payload["n"] for _, payload in shop.ledger("small")[-3:]] == [0, 2, 3]
    assert [payload["n"] for _, payload in shop.ledger("gone")[-2:]] == [1, 4]
    shop.assert_ledger_intact()
