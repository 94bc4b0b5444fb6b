"""A person's own limits: what they do not name they do not cover, at the vote and again at the start."""

from __future__ import annotations

import json
from typing import Any

import pytest
import sqlalchemy as sa

from policies.errors import FailsafeError, NotPermitted, RequestRefused
from resources.store.engine import Duty, engine_for, transaction
from resources.store.principals import Limits, list_principals, set_limits
from tests.approvals.asking import LEAD, Asking


def euros(minor: int, action_type: str = "order.refund", currency: str = "EUR") -> dict[str, Any]:
    """One amount that is asked for."""
    return {"action_type": action_type, "currency": currency, "minor": minor}


REFUNDS: Limits = {"order.refund": {"EUR": 50_000}}


@pytest.mark.parametrize(
    ("limits", "amounts", "covered"),
    [
        (None, [euros(10**12)], True),
        (REFUNDS, [euros(50_000)], True),
        (REFUNDS, [euros(50_001)], False),
        (REFUNDS, [euros(-50_001)], False),
        (REFUNDS, [euros(100), euros(50_001)], False),
        (REFUNDS, [euros(1, currency="USD")], False),
        (REFUNDS, [euros(0, currency="USD")], False),
        (REFUNDS, [euros(1, action_type="order.pay")], False),
        (REFUNDS, [{"action_type": "account.close"}], False),
        (REFUNDS, [{"action_type": "order.refund"}], True),
        ({**REFUNDS, "account.close": {}}, [euros(1), {"action_type": "account.close"}], True),
        ({"account.close": {}}, [euros(1, action_type="account.close")], False),
        ({}, [euros(1)], False),
        ({"order.refund": {"EUR": 2**53 - 1}}, [euros(2**53 - 1)], True),
    ],
)
def test_limits_cover_what_they_name(
    asking: Asking, limits: Limits | None, amounts: list[dict[str, Any]], covered: bool
) -> None:
    """Every amount within its type and currency, every type named; a sign makes no amount smaller."""
    lead, asked = asking.person(LEAD), asking.ask(amounts=amounts)
    assert set_limits(asking.operator, lead.name, limits)
    if covered:
        assert asking.vote(lead, asked).outcome == "released"
        return
    for vote in ("approve", "deny"):
        with pytest.raises(NotPermitted):
            asking.vote(lead, asked, vote)


@pytest.mark.parametrize("limits", [{"order.refund": {"EUR": 100}}, {"order.pay": {"EUR": 9_000}}, {}])
def test_limits_that_changed_after_the_vote_are_recounted_at_the_start(asking: Asking, limits: Limits) -> None:
    """Lowered between vote and start, they take the vote's weight away."""
    voter = asking.person("lead")
    released = asking.worker.released(decision="review", voters=[voter])
    asking.worker.tamper("approval_requests", f"amounts = '{json.dumps([euros(9_000)])}'", released)
    set_limits(asking.operator, voter.name, limits)
    assert asking.worker.refusal(released) == "too_few_votes"
    assert asking.worker.untouched(released)
    set_limits(asking.operator, voter.name, None)
    assert asking.worker.refusal(released) is None


@pytest.mark.parametrize(
    "limits",
    [
        [],
        "EUR",
        5,
        {"order.refund": 5},
        {"order.refund": None},
        {"order.refund": {"EUR": -1}},
        {"order.refund": {"EUR": 1.5}},
        {"order.refund": {"EUR": "much"}},
        {"order.refund": {"EUR": None}},
        {"order.refund": {"euro": 1}},
        {"order.refund": {"EUR": 10**17}},
    ],
)
def test_limits_that_could_not_be_read_are_refused(asking: Asking, limits: Any) -> None:
    """One person's unreadable limits would stop every vote and every start."""
    lead = asking.person(LEAD)
    with pytest.raises(RequestRefused, match="limits are"):
        set_limits(asking.operator, lead.name, limits)
    [found] = [one for one in list_principals(asking.operator) if one.name == lead.name]
    assert found.limits is None


def test_only_an_operator_sets_limits(asking: Asking) -> None:
    """Not the reviewer, and nobody for a person who does not exist."""
    assert not set_limits(asking.operator, "nobody of this name", {})
    for duty, url in ((Duty.REVIEWER, asking.reviewer), (Duty.WORKER, asking.url)):
        with pytest.raises(FailsafeError), transaction(engine_for(duty, url)) as connection:
            connection.execute(sa.text("select set_limits('x', '{}')"))
