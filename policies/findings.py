"""One result of validation: what is wrong, where, and how much it matters."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from policies.redaction import clipped

MAX_MESSAGE = 300
MAX_PATH = 200
MAX_FINDINGS = 50
"""Most findings kept of one output that cannot be read or sealed; one alone refuses it."""


class Severity(StrEnum):
    """What a finding does to the request."""

    REFUSE = "refuse"  # never executed
    REVIEW = "review"  # never executed without a person
    WARN = "warn"  # recorded; rules may look at it


CODES: Final[dict[str, str]] = {
    "not_a_proposal": "the output is not of the agreed shape",
    "no_actions": "the proposal holds no action",
    "too_many_actions": "the proposal holds more actions than allowed",
    "too_much_evidence": "an action with more evidence than allowed",
    "unknown_action": "the action type is not in the catalogue",
    "undo_proposed": "a compensation is never proposed, only planned",
    "duplicate_action": "the same action with the same parameters stands twice",
    "missing_field": "a required field is missing",
    "extra_field": "a field the schema does not have",
    "wrong_type": "a value of the wrong type",
    "bad_value": "a value the schema refuses",
    "text_too_long": "a longer text than allowed",
    "not_canonical": "a value without canonical form",
    "forbidden_character": "a character that cannot be stored",
    "quote_empty": "an empty quote",
    "quote_not_found": "a quote that does not stand in its source",
    "source_unknown": "evidence that names no known source",
    "parameter_unknown": "evidence for a parameter the action does not have",
    "quote_unrelated": "a quote that does not show the value it is given for",
    "authority_unsupported": "an authority parameter without support",
    "authority_mismatch": "an authority parameter that differs from the trusted record",
    "record_missing": "a trusted record that does not exist",
    "record_inactive": "a trusted record that is not active",
    "record_field_missing": "a trusted record without the field needed",
    "not_permitted": "the initiator's roles do not allow the action",
    "over_limit": "an amount over the policy's limit",
    "currency_not_covered": "an amount in a currency the limit does not name",
    "target_changed": "a proposal for an adapter or target that the catalogue no longer names",
    "claim_ambiguous": "one claim for two actions",
}
"""Every finding code with its meaning; a policy rule may name any of them."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One result of validation. `parameter` is a path such as `2:order.refund.amount`; empty: the whole output.

    Path and message may carry the model's words; both are made visible and clipped here, so that every finding can be
    stored and shown as it is.
    """

    code: str
    severity: Severity
    parameter: str
    message: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "parameter", clipped(self.parameter, MAX_PATH))
        object.__setattr__(self, "message", clipped(self.message, MAX_MESSAGE))


def refusal(code: str, parameter: str, message: str) -> Finding:
    """A finding that refuses the request."""
    return Finding(code, Severity.REFUSE, parameter, message)
