"""The review document, and whether an approval still covers what policy demands."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any, Literal

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from policies.approval import review_document, review_hash, still_satisfied
from policies.hashing import REVIEW, domain_hash
from policies.proposals import ProposedAction
from policies.risk import Assessment, Facts, assess
from policies.rules import Demand
from policies.tiers import Tier
from tests.policies.samples import NOW, REQUEST, TRUST, judged, policy, refund, sealed

RULES = policy(tiers=[{"tier": "medium", "because": "always asked"}])


def document(request: dict[str, Any] | None = None, action: ProposedAction | None = None, **changes: Any) -> bytes:
    """The review document of a refund."""
    proposal = sealed(action or refund())
    fields = REQUEST if request is None else request
    validation = judged(proposal, request=fields, rules=RULES)
    settings: dict[str, Any] = {
        "sealed": proposal,
        "validation": validation,
        "assessment": assess(proposal, validation, Facts(NOW), RULES),
        "workflow": "refunds",
        "initiator": "ben",
        "subject": "ann",
        "request_fields": fields,
        "trust": TRUST,
        "approval_round": 1,
    }
    return review_document(**(settings | changes))


def test_a_reviewer_is_shown_everything() -> None:
    """Sources with their trust, the exact actions, findings, reasons, effects, targets and the demand are all there."""
    shown = json.loads(document())
    assert shown["sources"] == [
        {"name": "order_id", "trust": "principal", "value": "A-17"},
        {"name": "message", "trust": "untrusted", "value": REQUEST["message"]},
    ]
    assert shown["actions"][0] | {"evidence": []} == {
        "action_id": "1:order.refund",
        "type": "order.refund",
        "parameters": dict(sealed(refund()).actions[0].values),
        "parameters_hash": sealed(refund()).actions[0].parameters_hash.hex(),
        "adapter": "RefundAdapter",
        "target": "https://provider",
        "reversible": False,
        "undo": None,
        "sensitivity": "financial",
        "recipient_scope": "external",
        "notification": False,
        "evidence": [],
        "rationale": "",
        "confidence": None,
    }
    assert shown["proposal_hash"] == sealed(refund()).hash.hex()
    assert (shown["tier"], shown["reasons"]) == ("medium", [{"tier": "medium", "because": "always asked"}])
    assert (shown["roles"], shown["people"], shown["expires_after"]) == (["lead"], 1, 172800)
    assert (shown["policy_version"], shown["round"], shown["parties"], shown["weakest_trust"]) == (
        "1",
        1,
        ["ann"],
        "untrusted",
    )
    assert (shown["initiator"], shown["subject"], shown["workflow"]) == ("ben", "ann", "refunds")


def test_the_document_is_canonical_and_named_by_its_hash() -> None:
    """The same facts give the same bytes and any other fact another hash."""
    data = document()
    assert data == document() == rfc8785.dumps(json.loads(data))
    assert review_hash(data) == domain_hash(REVIEW, data)
    changes: list[dict[str, Any]] = [{"approval_round": 2}, {"initiator": "eve"}, {"subject": None}]
    others = [review_hash(document(**change)) for change in changes]
    others.append(review_hash(document(action=refund(confidence=0.5))))
    others.append(review_hash(document(request=REQUEST | {"extra": 1})))
    assert len({review_hash(data), *others}) == 6


def test_hostile_text_is_shown_and_cannot_hide() -> None:
    """Lone surrogates, NUL, bidirectional and invisible characters stand in the document as escapes."""
    text = json.loads(document(request={"message": "a\ud800\0\u202eb\u200b TOTAL 48.20 EUR"}))["sources"][0]["value"]
    assert text == "a\\ud800\\u0000\\u202eb\\u200b TOTAL 48.20 EUR"


@given(
    st.dictionaries(
        st.text(st.characters(), max_size=5),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=5) | st.dates(),
            lambda inner: (
                st.lists(inner, max_size=2) | st.dictionaries(st.text(st.characters(), max_size=3), inner, max_size=2)
            ),
            max_leaves=4,
        ),
        max_size=3,
    )
)
def test_any_request_has_a_document(request_fields: dict[str, Any]) -> None:
    """Whatever a request holds, it can be shown, and the bytes hold no NUL even as an escape."""
    data = document(request=request_fields)
    assert b"\\u0000" not in data.replace(b"\\\\u0000", b"")
    json.loads(data)


def now(
    decision: Literal["auto", "review", "refuse"],
    demand: Demand | None = None,
    mode: Literal["live", "shadow"] = "live",
) -> Assessment:
    """An assessment made now."""
    return Assessment(Tier.MEDIUM, decision, (), demand, "2", mode)


def demand(roles: tuple[str, ...] = ("lead",), people: int = 1, hours: int = 48) -> Demand:
    """A demand of people."""
    return Demand(roles=roles, people=people, expires_after=timedelta(hours=hours))


@pytest.mark.parametrize(
    ("approved", "assessment", "expected"),
    [
        (None, now("auto"), True),
        (None, now("review", demand()), False),
        (None, now("refuse"), False),
        (demand(), now("auto"), True),
        (demand(), now("refuse"), False),
        (demand(), now("review", demand()), True),
        (demand(people=2), now("review", demand()), True),
        (demand(), now("review", demand(people=2)), False),
        (demand(), now("review", demand(("lead", "finance"))), True),
        (demand(("lead", "finance")), now("review", demand()), False),
        (demand(), now("review", demand(("finance",))), False),
        (demand(), now("review", demand(hours=72)), True),
        (demand(), now("review", demand(hours=1)), False),
        (demand(), now("auto", mode="shadow"), False),
        (None, now("auto", mode="shadow"), False),
    ],
)
def test_an_approval_covers_the_same_or_a_weaker_demand(
    approved: Demand | None, assessment: Assessment, expected: bool
) -> None:
    """Automatic is weakest, refusal strictest; more people, other roles, a shorter expiry or shadow are stricter."""
    assert still_satisfied(approved, assessment) is expected
