"""What becomes of each kind of claim, judged by the workflow's own policy; no store and no provider is touched."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import dagster_failsafe as fs
from examples.expenses.actions import Expense, NotifyEmployee, Reimburse, ReserveBudget
from examples.expenses.sample import Claim, claims, from_sroie
from examples.expenses.workflow import expenses
from policies.claims import claim_values
from policies.proposals import output_bytes, read_output
from policies.records import needed_records
from policies.risk import Assessment, Facts, assess
from policies.sealing import Sealed, seal
from policies.validation import validate
from tests.examples.conftest import TOKENS, Sandbox

TODAY = date(2026, 11, 29)
NOW = datetime(2026, 11, 29, 9, tzinfo=UTC)
RECEIPT = "TOKO CONTOH SDN BHD\nDATE: 03/11/2026\nTOTAL RM {total}\nVISA CARD RM {total}"


@dataclass(frozen=True)
class Outcome:
    """What became of one request: `abstained`, `unsealed`, or the policy's decision."""

    decision: str
    sealed: Sealed | None = None
    assessment: Assessment | None = None

    @property
    def payment(self) -> Reimburse:
        """The payment that would run."""
        assert self.sealed is not None
        [payment] = [one.action for one in self.sealed.actions if isinstance(one.action, Reimburse)]
        return payment

    @property
    def because(self) -> list[str]:
        """The reasons that the policy gives."""
        assert self.assessment is not None
        return [reason.because for reason in self.assessment.reasons]


def judged(payload: dict[str, Any], taken: set[tuple[str, bytes]] | None = None) -> Outcome:
    """One request through extractor, sealing, validation and policy, with the claims that others hold."""
    request = Expense.model_validate_json(json.dumps(payload))
    output = read_output(output_bytes(expenses.extractor(request)))
    if isinstance(output, fs.Abstention):
        return Outcome("abstained")
    assert isinstance(output, fs.Proposal)
    records = {
        (name, key): expenses.records[name].find(key) for name, key in needed_records(output, expenses.catalogue)
    }
    sealed = seal(
        output, request_id="1", revision=1, workflow=expenses.name, workflow_version=expenses.version,
        catalogue=expenses.catalogue, sources={}, records=records,
    )  # fmt: skip
    if not isinstance(sealed, Sealed):
        return Outcome("unsealed")
    policy = expenses.policy_in_force()
    validation = validate(
        sealed, request_fields=request.model_dump(mode="json"), trust=Expense.trust(), policy=policy,
        roles=frozenset({"expense_intake"}), records=records, catalogue=expenses.catalogue,
    )  # fmt: skip
    held = set() if taken is None else taken
    mine = set(claim_values(sealed, policy).items())
    facts = Facts(now=NOW, claims_taken=frozenset(kind for kind, _ in mine & held))
    assessment = assess(sealed, validation, facts, policy, expenses.rules)
    if assessment.decision != "refuse":
        held |= mine
    return Outcome(assessment.decision, sealed, assessment)


def claim(total: str = "48.20", receipt: str = RECEIPT, **changed: str) -> dict[str, Any]:
    """An ordinary payload, with something changed."""
    ordinary = {"employee_id": "E-101", "budget": "TRAVEL-26", "handed_in": "2026-11-29"}
    return {**ordinary, "receipt": receipt.format(total=total), **changed}


@pytest.fixture(scope="module")
def outcomes() -> dict[str, list[tuple[Claim, Outcome]]]:
    """The whole sample, judged in its order, by kind."""
    taken: set[tuple[str, bytes]] = set()
    found: dict[str, list[tuple[Claim, Outcome]]] = {}
    for one in claims(today=TODAY):
        if one.kind != "lone surrogate":  # intake refuses text that is no Unicode
            found.setdefault(one.kind, []).append((one, judged(one.row["payload"], taken)))
    return found


@pytest.mark.parametrize(
    ("kind", "decision"),
    [
        ("ordinary", "auto"),
        ("hostile", "auto"),
        ("NUL", "auto"),
        ("bidi", "auto"),
        ("emoji", "auto"),
        ("long line", "auto"),
        ("over the cap", "review"),
        ("high", "review"),
        ("foreign currency", "review"),
        ("far too high", "refuse"),
        ("old", "refuse"),
        ("inactive employee", "refuse"),
        ("closed budget", "refuse"),
        ("missing total", "abstained"),
        ("unknown employee", "unsealed"),
    ],
)
def test_each_kind_of_claim_meets_its_decision(
    outcomes: dict[str, list[tuple[Claim, Outcome]]], kind: str, decision: str
) -> None:
    """Ordinary receipts are paid at once, what is large or strange waits, what must not be paid is not."""
    assert {outcome.decision for _, outcome in outcomes[kind]} == {decision}


@pytest.mark.parametrize("kind", ["duplicate", "two scans"])
def test_a_receipt_handed_in_twice_is_paid_once_without_a_person(
    outcomes: dict[str, list[tuple[Claim, Outcome]]], kind: str
) -> None:
    """The second of each pair waits, because its merchant, day and total are taken."""
    decisions = [outcome.decision for _, outcome in outcomes[kind]]
    assert decisions == ["auto", "review"] * (len(decisions) // 2)


def test_a_blurred_receipt_is_paid_rightly_or_not_at_all(outcomes: dict[str, list[tuple[Claim, Outcome]]]) -> None:
    """Noise costs coverage, never money."""
    for one, outcome in outcomes["blurry"]:
        if outcome.sealed is not None:
            assert outcome.payment.amount == fs.Money(minor=one.bought.total, currency="MYR")


def test_the_sample_shows_every_outcome(outcomes: dict[str, list[tuple[Claim, Outcome]]]) -> None:
    """Somewhat more than half is automatic, a fifth waits for people, the rest is not paid."""
    decisions = [outcome.decision for pairs in outcomes.values() for _, outcome in pairs]
    assert 0.55 <= decisions.count("auto") / len(decisions) <= 0.60
    assert 0.15 <= decisions.count("review") / len(decisions) <= 0.22


def test_hostile_text_changes_neither_account_nor_amount(outcomes: dict[str, list[tuple[Claim, Outcome]]]) -> None:
    """Whatever the receipt demands, HR says who is paid and the receipt's own total how much."""
    for one, outcome in outcomes["hostile"]:
        record = expenses.records["employees"].find(one.row["payload"]["employee_id"])
        assert record is not None
        assert outcome.payment.account == record.fields["account"]
        assert outcome.payment.amount == fs.Money(minor=one.bought.total, currency="MYR")


def test_the_actions_run_from_reversible_to_notification() -> None:
    """The budget is reserved before money moves; the mail is last."""
    sealed = judged(claim()).sealed
    assert sealed is not None
    assert [type(one.action) for one in sealed.actions] == [ReserveBudget, Reimburse, NotifyEmployee]


@pytest.mark.parametrize(("total", "decision"), [("100.00", "auto"), ("100.01", "review"), ("2,000.01", "refuse")])
def test_the_caps_are_inclusive(total: str, decision: str) -> None:
    """What rests on the receipt alone is automatic up to the small cap."""
    assert judged(claim(total)).decision == decision


@pytest.mark.parametrize(("total", "people"), [("500.00", 1), ("500.01", 2)])
def test_larger_amounts_need_two_people(total: str, people: int) -> None:
    """A team lead alone releases up to 500."""
    assessment = judged(claim(total)).assessment
    assert assessment is not None
    assert assessment.demand is not None
    assert assessment.demand.people == people


def test_age_is_counted_to_the_day_of_handing_in() -> None:
    """Ninety days are in time however long the claim then waits; one more is too late."""
    day = date(2026, 11, 3)
    for days, decision in ((90, "auto"), (91, "refuse")):
        handed_in = (day + timedelta(days=days)).isoformat()
        assert judged(claim(handed_in=handed_in)).decision == decision


def test_a_receipt_without_a_merchant_waits_for_a_person() -> None:
    """Nobody can tell whether it was handed in before."""
    outcome = judged(claim(receipt=RECEIPT.removeprefix("TOKO CONTOH SDN BHD\n")))
    assert outcome.decision == "review"
    assert outcome.because == ["no merchant could be read, so nobody can tell whether the receipt was handed in before"]


@pytest.mark.parametrize(
    "receipt",
    [
        RECEIPT.replace("DATE: 03/11/2026\n", ""),
        RECEIPT.replace("RM", "$"),
        RECEIPT.replace("VISA CARD RM {total}", ""),
    ],
    ids=["no date", "which dollars", "unconfirmed total"],
)
def test_what_is_not_certain_is_not_proposed(receipt: str) -> None:
    """The reader abstains and a person looks."""
    assert judged(claim(receipt=receipt)).decision == "abstained"


def test_the_claimed_currency_counts_only_where_the_receipt_prints_none() -> None:
    """A printed currency is not overruled by the form."""
    bare = RECEIPT.replace("RM ", "")
    assert judged(claim(receipt=bare, currency="EUR")).payment.amount.currency == "EUR"
    assert judged(claim(currency="EUR")).payment.amount.currency == "MYR"


def test_real_receipts_run_through_the_same_policy(shared_data: Path) -> None:
    """Seven of ten are paid at once, and what is proposed is nearly never refused."""
    taken: set[tuple[str, bytes]] = set()
    rows = from_sroie(shared_data / "receipts-sroie" / "receipts.jsonl.gz")
    decisions = [judged(row["payload"], taken).decision for row in rows]
    assert decisions.count("auto") >= 0.70 * len(decisions)
    assert decisions.count("refuse") + decisions.count("unsealed") <= 0.02 * len(decisions)


@pytest.fixture
def environment(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> Sandbox:
    """The sandbox with the environment that the adapters read."""
    monkeypatch.setenv("SANDBOX_URL", sandbox.url)
    for name, token in TOKENS.items():
        monkeypatch.setenv(name, token)
    return sandbox


MONEY, OTHER = fs.Money.parse("48.20 MYR"), fs.Money.parse("48.21 MYR")


@pytest.mark.parametrize(
    ("action", "changed"),
    [
        (ReserveBudget(budget="TRAVEL-26", amount=MONEY), {"amount": OTHER}),
        (
            Reimburse(
                employee_id="E-101", account="MY-1", amount=MONEY, receipt_date=TODAY, handed_in=TODAY, merchant=None
            ),
            {"amount": OTHER},
        ),
        (NotifyEmployee(employee_id="E-101", email="a@example.com", amount=MONEY), {"email": "b@example.com"}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_each_adapter_keeps_its_promises_against_the_sandbox(
    environment: Sandbox, action: fs.Action, changed: dict[str, Any]
) -> None:
    """Keys, look-up, secrets and timeouts, seen with the provider's own ledger."""
    adapter = expenses.actions[type(action)]
    other = action.model_copy(update=changed)
    fs.testing.conformance(adapter, action, other=other, count_effects=environment.effects).check()
