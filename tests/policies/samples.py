"""A small refund workflow that the policy tests speak about."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime
from typing import Annotated, Any

from policies.actions import Action, Authority, Trust
from policies.catalogue import Catalogue, CatalogueEntry
from policies.findings import Finding
from policies.money import Money
from policies.outcomes import Semantics
from policies.policy import Policy
from policies.proposals import Evidence, Proposal, ProposedAction, propose
from policies.records import Record, ResolvedRecords
from policies.sealing import Sealed, seal
from policies.validation import Validation, validate

NOW = datetime(2026, 3, 10, 12, 0, tzinfo=UTC)


class Release(Action, name="stock.release", reversible=False):
    """Undoes a reservation."""

    sku: str


class Reserve(Action, name="stock.reserve", reversible=True, undo=Release):
    """Reversible, so it runs first."""

    sku: str
    pieces: int = 1


class Refund(Action, name="order.refund", reversible=False, sensitivity="financial", recipient_scope="external"):
    """Moves money: who is paid comes from the order's record, how much from a quote."""

    order_id: Annotated[str, Authority(record="orders")]
    payee: Annotated[str, Authority(record="orders", field="customer")]
    amount: Annotated[Money, Authority()]
    bought_on: date | None = None
    asked_on: date | None = None
    note: str = ""


class Notify(Action, name="customer.notify", reversible=False, sensitivity="personal", notification=True):
    """Tells somebody, so it runs last."""

    text: str


CATALOGUE = Catalogue(
    {
        kind.action_type.name: CatalogueEntry(
            kind.action_type, f"{kind.__name__}Adapter", "https://provider", Semantics()
        )
        for kind in (Notify, Refund, Reserve, Release)
    }
)
ORDER = Record("orders", "A-17", {"customer": "C-1", "total": "48.20 EUR"}, principal="ann")
RECORDS: ResolvedRecords = {("orders", "A-17"): ORDER}
REQUEST = {"order_id": "A-17", "message": "Please pay back. TOTAL 48.20 EUR, bought 2026-03-01. Thanks"}
TRUST = {"order_id": Trust.PRINCIPAL, "message": Trust.UNTRUSTED}
AMOUNT_QUOTE = Evidence("amount", "message", "TOTAL 48.20 EUR")
REVIEW = {"review": {"roles": ["lead"], "people": 1, "expires_after": "2d"}}


def policy_document(**changes: Any) -> dict[str, Any]:
    """A complete policy document; a change of None leaves the key out."""
    document = {
        "version": "1",
        "mode": "live",
        "tiers": [],
        "decisions": {"low": "auto", "medium": REVIEW, "high": REVIEW, "critical": "refuse"},
    } | changes
    return {name: value for name, value in document.items() if value is not None}


def policy(**changes: Any) -> Policy:
    """The policy that the changed document holds."""
    return Policy.load(policy_document(**changes), "policy.yaml")


def refund(evidence: Iterable[Evidence] = (AMOUNT_QUOTE,), **changes: Any) -> ProposedAction:
    """A refund that passes every check; a change of None leaves the parameter out."""
    confidence = changes.pop("confidence", None)
    parameters = {"order_id": "A-17", "amount": "48.20 EUR"} | changes
    given = {name: value for name, value in parameters.items() if value is not None}
    return propose(Refund, evidence=tuple(evidence), confidence=confidence, **given)


def try_seal(
    *actions: ProposedAction, records: ResolvedRecords = RECORDS, catalogue: Catalogue = CATALOGUE
) -> Sealed | tuple[Finding, ...]:
    """What sealing says of the actions."""
    return seal(
        Proposal(actions),
        request_id="r-1",
        revision=1,
        workflow="refunds",
        workflow_version="1",
        catalogue=catalogue,
        sources={"message": "ab" * 32},
        records=records,
    )


def sealed(*actions: ProposedAction, records: ResolvedRecords = RECORDS) -> Sealed:
    """The sealed proposal of actions that must be sealable."""
    result = try_seal(*actions, records=records)
    assert isinstance(result, Sealed), result
    return result


def refused(*actions: ProposedAction, records: ResolvedRecords = RECORDS) -> tuple[Finding, ...]:
    """The findings of actions that must not be sealable."""
    result = try_seal(*actions, records=records)
    assert not isinstance(result, Sealed)
    return result


def judged(
    proposal: Sealed,
    *,
    request: Mapping[str, Any] = REQUEST,
    trust: Mapping[str, Trust] = TRUST,
    roles: frozenset[str] = frozenset({"clerk"}),
    rules: Policy | None = None,
    records: ResolvedRecords = RECORDS,
) -> Validation:
    """What validation says of a sealed proposal."""
    return validate(
        proposal,
        request_fields=request,
        trust=trust,
        roles=roles,
        policy=rules or policy(),
        records=records,
        catalogue=CATALOGUE,
    )


def codes(findings: Iterable[Finding]) -> list[str]:
    """The codes of findings, in order."""
    return [finding.code for finding in findings]
