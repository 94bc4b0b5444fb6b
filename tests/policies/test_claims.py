"""Claims and novelty are named by hashes."""

from __future__ import annotations

from typing import Any

import pytest

from policies.claims import claim_values, novel_values
from policies.policy import Policy
from policies.proposals import propose
from policies.records import Record
from tests.policies.samples import Reserve, policy, refund, sealed

CLAIM_RULE = {"tier": "critical", "claim": "receipt", "because": "paid before"}


def rules(paths: list[str]) -> Policy:
    """A policy with one claim."""
    return policy(claims={"receipt": paths}, tiers=[CLAIM_RULE])


def claimed(paths: list[str], **changes: Any) -> bytes | None:
    """The claim that a changed refund makes."""
    records = {("orders", key): Record("orders", key, {"customer": "C-1"}) for key in ("A-17", "a-17 ", "A-18")}
    return claim_values(sealed(refund(**changes), records=records), rules(paths)).get("receipt")


def test_the_same_facts_make_the_same_claim() -> None:
    """Only the parameters that make up a claim count."""
    paths = ["order.refund.order_id", "order.refund.amount"]
    assert claimed(paths) == claimed(paths, note="another scan")
    assert claimed(paths) != claimed(paths, amount="48.21 EUR")
    assert claimed(paths) != claimed(paths, order_id="A-18")


@pytest.mark.parametrize("note", ["Corner Shop", "corner shop", "CORNER  SHOP ", "Corner\nShop", "Ｃｏｒｎｅｒ Shop"])
def test_texts_are_compared_without_their_dress(note: str) -> None:
    """Case, white space and compatibility forms make no other claim of a scanned text."""
    assert claimed(["order.refund.note"], note=note) == claimed(["order.refund.note"], note="Corner Shop")


def test_parameters_do_not_run_together() -> None:
    """The same texts in other places are another claim."""
    paths = ["order.refund.note", "order.refund.payee"]
    assert claimed(paths, note="C-1 x") != claimed(list(reversed(paths)), note="C-1 x")


def test_a_claim_with_a_missing_part_is_not_made() -> None:
    """A receipt without a date claims nothing about that date."""
    assert claimed(["order.refund.order_id", "order.refund.bought_on"]) is None
    assert claim_values(sealed(propose(Reserve, sku="S-1")), rules(["order.refund.order_id"])) == {}


def test_kinds_are_told_apart() -> None:
    """The same values under another kind of claim have another hash."""
    one = claim_values(sealed(refund()), rules(["order.refund.order_id"]))["receipt"]
    other_rules = policy(claims={"order": ["order.refund.order_id"]}, tiers=[CLAIM_RULE | {"claim": "order"}])
    assert one != claim_values(sealed(refund()), other_rules)["order"]


def test_novelty_is_asked_by_full_path() -> None:
    """Each rule on novelty gives its path and the hashes of what is proposed there."""
    novel = policy(tiers=[{"tier": "high", "action": "order.refund", "novel": "payee", "because": "new payee"}])
    one = novel_values(sealed(refund()), novel)
    assert list(one) == ["order.refund.payee"]
    assert len(one["order.refund.payee"]) == 1
    assert novel_values(sealed(propose(Reserve, sku="S-1")), novel) == {"order.refund.payee": ()}
