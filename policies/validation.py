"""Judging a sealed proposal: evidence, permission, limits and the current state of the records it rests on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic_core import to_json

from policies.actions import Trust
from policies.amounts import amounts_in, exceeds
from policies.catalogue import Catalogue
from policies.claims import claimants
from policies.evidence import Quote, Source, find_quote, leaves, record_source, source_text, support, weaker
from policies.findings import Finding, Severity, refusal
from policies.policy import Policy
from policies.records import Record, RecordLink, ResolvedRecords, field_value, record_key, record_links
from policies.sealing import Sealed, SealedAction

Verdict = Literal["passed", "review", "refused"]


@dataclass(frozen=True, slots=True)
class Validation:
    """What validation found.

    Attributes:
        findings: everything found, in the order of the actions.
        verdict: `refused` where any finding refuses, `review` where any asks for a person, else `passed`.
        parties: external ids of the people that resolved records stand for; they never vote.
        weakest_trust: the weakest source that any authority parameter rests on; `record` where there is none.
    """

    findings: tuple[Finding, ...]
    verdict: Verdict
    parties: frozenset[str]
    weakest_trust: Trust


def validate(
    sealed: Sealed,
    *,
    request_fields: Mapping[str, Any],
    trust: Mapping[str, Trust],
    roles: frozenset[str],
    policy: Policy,
    records: ResolvedRecords,
    catalogue: Catalogue,
) -> Validation:
    """Judge every action of the proposal by the facts given.

    `request_fields` is the request as received, `trust` what each field may be believed (a field it does not name is
    untrusted), `roles` are the initiator's. An authority parameter stands where the trusted record that its key names
    says the same, and the key itself is quoted from the request or is the value of a field the principal gave; without
    a record, where a quote shows it.
    """
    sources = {
        name: Source(source_text(value), trust.get(name, Trust.UNTRUSTED)) for name, value in request_fields.items()
    }
    given = [value for name, value in request_fields.items() if trust.get(name) is Trust.PRINCIPAL]
    judge = _Judge(sources=sources, given=given, roles=roles, policy=policy, records=records, catalogue=catalogue)
    for action in sealed.actions:
        judge.judge(action)
    for kind, action_ids in claimants(sealed, policy):
        message = f"{' and '.join(action_ids)} make the same claim; send them as requests of their own"
        judge.findings.append(refusal("claim_ambiguous", "", f"{kind}: {message}"))
    severities = {finding.severity for finding in judge.findings}
    verdict: Verdict = (
        "refused" if Severity.REFUSE in severities else "review" if Severity.REVIEW in severities else "passed"
    )
    return Validation(tuple(judge.findings), verdict, frozenset(judge.parties), judge.weakest)


@dataclass(slots=True, kw_only=True)
class _Judge:
    """Collects findings over the actions of one proposal; lives for one call of `validate`."""

    sources: Mapping[str, Source]
    given: list[Any]  # what the principal said
    roles: frozenset[str]
    policy: Policy
    records: ResolvedRecords
    catalogue: Catalogue
    findings: list[Finding] = field(default_factory=list)
    parties: set[str] = field(default_factory=set)
    weakest: Trust = Trust.RECORD

    def judge(self, action: SealedAction) -> None:
        entry = self.catalogue.entries.get(action.action_type.name)
        if entry is None or (entry.adapter, entry.target) != (action.adapter, action.target):
            self._refuse("target_changed", action, "", "it was proposed for another target; make a new proposal")
        self._judge_permission(action)
        self._judge_limit(action)
        resolved = self._judge_records(action)
        quotes = self._judge_quotes(action, resolved)
        self._judge_authority(action, resolved, quotes)

    def _judge_permission(self, action: SealedAction) -> None:
        name = action.action_type.name
        if self.policy.permissions is None:
            return
        allowed = self.policy.permissions.get(name, ())
        if self.roles.isdisjoint(allowed):
            needed = f"one of the roles {', '.join(allowed)}" if allowed else "a role that the policy gives to nobody"
            self._refuse("not_permitted", action, "", f"to initiate {name} needs {needed}")

    def _judge_limit(self, action: SealedAction) -> None:
        limits = self.policy.limits.get(action.action_type.name)
        if limits is None:
            return
        for parameter, amount in amounts_in(action.action):
            over = exceeds(amount, limits)
            stated = ", ".join(map(str, limits))
            if over:
                self._refuse("over_limit", action, parameter, f"{amount} is over the limit of {stated}")
            elif over is None:
                message = f"{amount} is in the currency of none of the limits: {stated}"
                self._find(Severity.REVIEW, "currency_not_covered", action, parameter, message)

    def _judge_records(self, action: SealedAction) -> dict[RecordLink, Record]:
        """The records found for the action's parameters; what is wrong with them becomes findings."""
        resolved: dict[RecordLink, Record] = {}
        reported = set()
        for link in record_links(action.action_type.model):
            key = record_key(action.values[link.key])
            record = None if key is None else self.records.get((link.record, key))
            if record is None or not record.active:
                if (link.record, key) not in reported:
                    reported.add((link.record, key))
                    self._report_record(action, link, record)
                if record is None:
                    continue
            if record.principal is not None:
                self.parties.add(record.principal)
            resolved[link] = record
            if link.is_key and link.field == link.parameter:
                continue  # it was found by this very value
            if link.field not in record.fields:
                message = f"record {link.record} has no field {link.field}; the service must provide it"
                self._refuse("record_field_missing", action, link.parameter, message)
            elif not _same(action, link.parameter, field_value(record, link.field)):
                message = f"the proposed value is not the {link.field} of record {link.record}"
                self._refuse("authority_mismatch", action, link.parameter, message)
        return resolved

    def _report_record(self, action: SealedAction, link: RecordLink, record: Record | None) -> None:
        if record is None:
            self._refuse("record_missing", action, link.key, f"{link.record} has no such record")
        else:
            message = f"this record of {link.record} is not active: {record.reason or 'no reason given'}"
            self._refuse("record_inactive", action, link.key, message)

    def _judge_quotes(self, action: SealedAction, resolved: Mapping[RecordLink, Record]) -> dict[str, list[Quote]]:
        """The quotes that stand in their sources, by the parameter they are given for."""
        quotes: dict[str, list[Quote]] = {}
        for evidence in action.evidence:
            parameter = evidence.parameter.split(".", 1)[0]
            source = self._source(evidence.source, resolved)
            if parameter not in action.values:
                self._refuse("parameter_unknown", action, evidence.parameter, "evidence for no parameter of the action")
            elif source is None:
                message = f"{evidence.source!r} is no field of the request and no record of the action"
                self._refuse("source_unknown", action, parameter, message)
            elif not evidence.quote.strip():
                self._refuse("quote_empty", action, parameter, "an empty quote shows nothing")
            else:
                quote = find_quote(evidence, source)
                if quote is not None:
                    quotes.setdefault(parameter, []).append(quote)
                else:
                    message = f"{evidence.quote[:80]!r} does not stand in {evidence.source}"
                    self._refuse("quote_not_found", action, parameter, message)
        return quotes

    def _source(self, name: str, resolved: Mapping[RecordLink, Record]) -> Source | None:
        source = self.sources.get(name)
        if source is not None or not name.startswith("record:"):
            return source
        found = {id(record): record for link, record in resolved.items() if f"record:{link.record}" == name}
        texts = [record_source(record).text for record in found.values()]
        return Source("\n".join(texts), Trust.RECORD) if texts else None

    def _judge_authority(
        self, action: SealedAction, resolved: Mapping[RecordLink, Record], quotes: Mapping[str, list[Quote]]
    ) -> None:
        kind = action.action_type

        def currencies(code: str) -> Trust | None:
            if any(code in leaves(list(record.fields.values())) for record in resolved.values()):
                return Trust.RECORD
            return Trust.PRINCIPAL if code in leaves(self.given) else None

        for key in {link.key: None for link in record_links(kind.model)}:
            self._rest_upon(self._key_trust(action, key, quotes.get(key, [])), action, key)
        for parameter, mark in kind.authority.items():
            value = getattr(action.action, parameter)
            if mark.record is None and value is not None:  # None moves nothing and reaches nobody
                self._rest_upon(support(value, quotes.get(parameter, ()), currencies), action, parameter)
        for parameter, given in quotes.items():
            value = getattr(action.action, parameter)
            if parameter not in kind.authority and support(value, given, currencies) is None:
                message = "the quote stands in its source and does not show this value"
                self._find(Severity.WARN, "quote_unrelated", action, parameter, message)

    def _key_trust(self, action: SealedAction, key: str, quotes: list[Quote]) -> Trust | None:
        # A record never vouches for the key it was found by: that would let the model pick any record that exists.
        value, wanted = getattr(action.action, key), record_key(action.values[key])
        if wanted is not None and any(record_key(leaf) == wanted for leaf in leaves(self.given)):
            return Trust.PRINCIPAL
        requested = [quote for quote in quotes if quote.source.trust is not Trust.RECORD]
        return support(value, requested, lambda _: None)  # a key is no amount and has no currency

    def _rest_upon(self, trust: Trust | None, action: SealedAction, parameter: str) -> None:
        if trust is None:
            message = "no quote shows this value and no trusted field states it"
            self._refuse("authority_unsupported", action, parameter, message)
        else:
            self.weakest = weaker(self.weakest, trust)

    def _refuse(self, code: str, action: SealedAction, parameter: str, message: str) -> None:
        self._find(Severity.REFUSE, code, action, parameter, message)

    def _find(self, severity: Severity, code: str, action: SealedAction, parameter: str, message: str) -> None:
        path = f"{action.action_id}.{parameter}" if parameter else action.action_id
        self.findings.append(Finding(code, severity, path, message))


def _same(action: SealedAction, parameter: str, recorded: Any) -> bool:
    """Whether the record's value is the proposed one once the action's own schema has normalised it."""
    proposed = action.values[parameter]
    if proposed == recorded and type(proposed) is type(recorded):
        return True
    try:
        other = action.action_type.model.model_validate_json(to_json({**action.values, parameter: recorded}))
    except Exception:  # noqa: BLE001 - the schema or a validator of the action class does not accept it at all
        return False
    return bool(other.model_dump(mode="json")[parameter] == proposed)
