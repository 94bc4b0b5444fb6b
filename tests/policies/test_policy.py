"""Loading a policy: whole and right, or an error that says what to do."""

from __future__ import annotations

from copy import deepcopy
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from policies.errors import DefinitionError
from policies.money import Money
from policies.policy import Policy, check_against
from policies.rules import Demand
from policies.tiers import Tier
from tests.policies.samples import CATALOGUE, REVIEW, policy, policy_document

RULE = {"tier": "medium", "because": "above the clerk's limit"}


def mistake(document: Any) -> str:
    """The message of the error that loading raises."""
    with pytest.raises(DefinitionError) as caught:
        Policy.load(document, "refunds/policy.yaml")
    return str(caught.value)


def test_a_policy_is_read_whole() -> None:
    """Every part of the document becomes what it means."""
    loaded = policy(
        permissions={"order.refund": ["clerk"]},
        limits={"order.refund": ["500.00 EUR", "600.00 USD"]},
        tiers=[RULE | {"action": "order.refund", "over": "50.00 EUR"}, RULE | {"older_than": "90d", "field": "a.b"}],
        claims={},
    )
    assert (loaded.version, loaded.mode) == ("1", "live")
    assert loaded.permissions == {"order.refund": ("clerk",)}
    assert loaded.limits["order.refund"] == (Money.parse("500.00 EUR"), Money.parse("600.00 USD"))
    assert loaded.tiers[0].over == (Money.parse("50.00 EUR"),)
    assert loaded.tiers[1].older_than == timedelta(days=90)
    assert loaded.decisions[Tier.LOW].kind == "auto"
    assert loaded.decisions[Tier.HIGH].demand == Demand(roles=("lead",), people=1, expires_after=timedelta(days=2))
    assert loaded.decisions[Tier.CRITICAL].kind == "refuse"


@pytest.mark.parametrize(("text", "length"), [("30m", 1800), ("12h", 43200), ("2d", 172800)])
def test_durations(text: str, length: int) -> None:
    """Minutes, hours and days are read."""
    review = {"review": {"roles": ["lead"], "people": 1, "expires_after": text}}
    demand = policy(decisions=dict.fromkeys(Tier, review)).decisions[Tier.LOW].demand
    assert demand is not None
    assert demand.expires_after == timedelta(seconds=length)


@pytest.mark.parametrize(
    "text", ["NOT_A_DURATION", "-1d", "0d", "5", 5, "", "1.5h", "2 d", "2w", "1d12h", "2D", None, "٣d"]
)
def test_a_malformed_duration_does_not_load(text: Any) -> None:
    """A duration that is not exactly one of the forms is an error with an example."""
    review = {"review": {"roles": ["lead"], "people": 1, "expires_after": text}}
    message = mistake(policy_document(decisions=policy_document()["decisions"] | {"high": review}))
    assert "decisions.high.review.expires_after" in message
    assert "30m, 12h or 2d" in message


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"version": None}, ["version is missing", 'version: "2026-11-29"']),
        ({"version": ""}, ["version", "put the version in quotes"]),
        ({"version": 2}, ["version", "put the version in quotes"]),
        ({"mode": None}, ["mode is missing", "mode: shadow", "there is no default"]),
        ({"mode": "dry"}, ["mode", "write shadow or live"]),
        ({"decisions": None}, ["decisions is missing", "low, medium, high and critical"]),
        ({"tiers": {}}, ["tiers"]),
        ({"teirs": []}, ["unknown key teirs", "did you mean tiers?"]),
        ({"owner": "me"}, ["unknown key owner", "the keys are version, mode"]),
        (
            {"tiers": [RULE, RULE | {"ovr": "50.00 EUR"}]},
            ["tiers[1].ovr", "above the clerk's limit", "did you mean over?"],
        ),
        ({"tiers": [{"tier": "medium"}]}, ["tiers[0].because", "say why"]),
        ({"tiers": [{"because": "why"}]}, ["tiers[0].tier", "low, medium, high or critical"]),
        ({"tiers": [RULE | {"tier": "severe"}]}, ["tiers[0].tier", "write low, medium, high or critical"]),
        ({"tiers": [RULE | {"over": 50.0}]}, ["tiers[0].over", "50.00 EUR"]),
        ({"tiers": [RULE | {"over": "50 euros"}]}, ["tiers[0].over", "50.00 EUR"]),
        ({"tiers": [RULE | {"over": []}]}, ["tiers[0].over", "50.00 EUR"]),
        ({"tiers": [RULE | {"evidence": "bad"}]}, ["tiers[0].evidence", "'untrusted' or 'unquoted'"]),
        ({"tiers": [RULE | {"finding": "nonsense"}]}, ["tiers[0]", "'nonsense' does not exist", "over_limit"]),
        ({"tiers": [RULE | {"field": "a.b"}]}, ["tiers[0]", "field and older_than belong together"]),
        ({"tiers": [RULE | {"older_than": "2d"}]}, ["tiers[0]", "field and older_than belong together"]),
        ({"tiers": [RULE | {"as_of": "a.b"}]}, ["tiers[0]", "give field and older_than as well"]),
        (
            {"tiers": [RULE | {"field": "a.b", "as_of": "c.d", "older_than": "2d"}]},
            ["tiers[0]", "as_of must name a parameter of the same action as field"],
        ),
        ({"tiers": [RULE | {"missing": "day"}]}, ["tiers[0]", "write <action type>.day"]),
        ({"tiers": [RULE | {"confidence_below": 80}]}, ["tiers[0].confidence_below", "less than or equal to 1"]),
        ({"tiers": [RULE | {"confidence_below": float("nan")}]}, ["tiers[0].confidence_below"]),
        ({"tiers": [RULE | {"reversible": "no"}]}, ["tiers[0].reversible", "valid boolean"]),
        ({"tiers": [RULE | {"claim": "paid"}]}, ["claim 'paid'", "say under claims"]),
        ({"claims": {"paid": ["order.refund.order_id"]}}, ["no rule says", "claim: paid"]),
        ({"claims": {"paid": []}}, ["claims.paid"]),
        ({"permissions": {"order.refund": "clerk"}}, ["permissions.order.refund", "write a list of roles"]),
        ({"limits": {"order.refund": 50}}, ["limits.order.refund", "50.00 EUR"]),
        ({"decisions": {"low": "auto"}}, ["decisions must name every tier", "medium, high, critical"]),
    ],
)
def test_a_mistake_names_file_place_and_remedy(changes: dict[str, Any], said: list[str]) -> None:
    """Every mistake is an error that names the file, the rule and what to write instead."""
    message = mistake(policy_document(**changes))
    assert message.startswith("refunds/policy.yaml: ")
    for words in said:
        assert words in message


@pytest.mark.parametrize(
    ("decision", "said"),
    [
        ("automatic", "write auto, refuse, or {review:"),
        ("review", "write auto, refuse, or {review:"),
        (None, "write auto, refuse, or {review:"),
        ({"kind": "auto"}, "write auto, refuse, or {review:"),
        ({"review": None}, "write {review:"),
        ({"review": {}}, "decisions.high.review.roles: roles is missing; name the roles"),
        ({"review": REVIEW["review"] | {"roles": []}}, "decisions.high.review.roles"),
        ({"review": REVIEW["review"] | {"roles": "lead"}}, "write a list of roles"),
        ({"review": REVIEW["review"] | {"people": 0}}, "decisions.high.review.people"),
        ({"review": REVIEW["review"] | {"people": "2"}}, "decisions.high.review.people"),
        ({"review": REVIEW["review"] | {"quorum": 2}}, "unknown key quorum; the keys are roles, people, expires_after"),
        ({"review": REVIEW["review"] | {"on_expiry": "approve"}}, "unknown key on_expiry"),
    ],
)
def test_a_wrong_decision_does_not_load(decision: Any, said: str) -> None:
    """A tier decides one of three things, written in one way."""
    assert said in mistake(policy_document(decisions=policy_document()["decisions"] | {"high": decision}))


def test_an_unknown_tier_does_not_load() -> None:
    """The decision table has the four tiers and no others."""
    message = mistake(policy_document(decisions=policy_document()["decisions"] | {"extreme": "refuse"}))
    assert "the tiers are low, medium, high and critical" in message


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (None, "the policy is empty"),
        ([], "the policy"),
        ("mode: live", "the policy"),
        ({"version": date(2026, 11, 29)}, "version: YAML reads 2026-11-29 as date; put it in quotes"),
        ({"tiers": [{"because": datetime(2026, 1, 1, tzinfo=UTC)}]}, "tiers[0].because: YAML reads"),
        ({True: "yes"}, "key True is not text; put it in quotes"),
        ({"limits": {7: "1.00 EUR"}}, "limits: key 7 is not text"),
    ],
)
def test_what_yaml_reads_otherwise_is_explained(document: Any, said: str) -> None:
    """Values that YAML turns into something else than text are named with the remedy."""
    assert said in mistake(document)


def test_every_mistake_is_listed_at_once() -> None:
    """One load shows all mistakes of one kind of check."""
    message = mistake(policy_document(mode=None, version=None, tiers=[{"tier": "medium"}]))
    assert len(message.splitlines()) == 3


def test_a_policy_hash_follows_what_it_says() -> None:
    """The hash changes with any rule and not with the order of keys."""
    document = policy_document(tiers=[RULE])
    reordered = dict(reversed(deepcopy(document).items()))
    assert Policy.load(document, "a").hash == Policy.load(reordered, "b").hash
    assert Policy.load(document, "a").hash != policy(tiers=[RULE | {"tier": "high"}]).hash


GOOD_RULES = [
    RULE | {"action": "order.refund", "field": "bought_on", "older_than": "90d"},
    RULE | {"missing": "order.refund.note", "novel": "order.refund.payee"},
    RULE | {"claim": "paid"},
]


def test_a_policy_that_fits_its_catalogue() -> None:
    """Names that exist pass."""
    roles = {name: ["clerk"] for name in ("order.refund", "stock.reserve", "customer.notify")}
    fitting = policy(
        permissions=roles,
        limits={"order.refund": "1.00 EUR"},
        tiers=GOOD_RULES,
        claims={"paid": ["order.refund.order_id"]},
    )
    check_against(fitting, CATALOGUE, "policy.yaml")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"tiers": [RULE | {"action": "order.refnd"}]},
            ["tiers[0] (above the clerk's limit)", "'order.refnd'", "use one of"],
        ),
        ({"tiers": [RULE | {"action": "stock.release"}]}, ["'stock.release' is not in the catalogue"]),
        ({"tiers": [RULE | {"missing": "order.refund.day"}]}, ["'order.refund.day' is no parameter"]),
        ({"tiers": [RULE | {"action": "order.refund", "novel": "day"}]}, ["'order.refund.day' is no parameter"]),
        ({"tiers": [RULE | {"field": "order.refund.note", "older_than": "2d"}]}, ["older_than needs a date"]),
        (
            {"tiers": [RULE | {"field": "order.refund.bought_on", "as_of": "order.refund.note", "older_than": "2d"}]},
            ["older_than needs a date"],
        ),
        ({"limits": {"order.refnd": "1.00 EUR"}}, ["limits.order.refnd"]),
        ({"permissions": {"order.refund": ["clerk"]}}, ["customer.notify is not named", "stock.reserve is not named"]),
        ({"permissions": {"other": ["clerk"]}}, ["permissions.other"]),
        (
            {"claims": {"paid": ["order.refund.day"]}, "tiers": [RULE | {"claim": "paid"}]},
            ["claims.paid", "'order.refund.day' is no parameter"],
        ),
    ],
)
def test_a_name_the_catalogue_lacks_is_a_mistake(changes: dict[str, Any], said: list[str]) -> None:
    """What the policy names and the catalogue does not have is an error with file, place and remedy."""
    with pytest.raises(DefinitionError) as caught:
        check_against(policy(**changes), CATALOGUE, "policy.yaml")
    assert str(caught.value).startswith("policy.yaml: ")
    for words in said:
        assert words in str(caught.value)
