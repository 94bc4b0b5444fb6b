"""The account of a request as text."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

from console.output import shown
from policies.states import State
from resources.store.account import Account


def account_lines(account: Account) -> list[str]:
    """Everything the store knows of a request that nobody was asked about."""
    return list(_lines(account))


def input_lines(state: str, request_id: UUID) -> Iterator[str]:
    """How a person adds what a request lacks, where it takes any input."""
    if state == State.NEEDS_REVIEW:
        command = f"failsafe supply {request_id} --field NAME=VALUE --reason WHY"
        yield f"it needs review: who submitted it, or an operator, can add what is missing: {command}"


def _lines(account: Account) -> Iterator[str]:
    yield f"{account.operation_id}  {account.state}{f': {account.reason}' if account.reason else ''}"
    yield f"workflow: {account.workflow}, version {account.workflow_version}"
    yield f"request: {account.request_id}"
    yield f"submitted by: {account.initiator}{f' on behalf of {account.subject}' if account.subject else ''}"
    yield f"batch: {account.batch_key}, received {shown(account.received_at)}"
    if account.tier:
        yield f"tier: {account.tier}, decision {account.decision} ({account.mode}), policy {account.policy_version}"
    for reason in account.reasons or ():
        yield f"  {reason['tier']}: {reason['because']}"
    for finding in account.findings or ():
        yield f"finding, {finding['severity']}: {finding['code']} {finding['parameter']}: {finding['message']}"
    for effect in account.effects or ():
        outcome = effect["reference"] or effect["error"] or ""
        yield f"effect: {effect['action']} at {effect['provider']}: {effect['state']} {outcome}"
    if account.output is not None:
        yield f"{account.output_kind} by {account.model or 'the extractor'} {account.prompt_version or ''}:"
        yield from _quoted(account.output)
    for one in account.inputs or ():
        yield f"supplied by {one['by']}: {', '.join(one['fields'])}, and so revision {one['revision']} began"
    yield "the request as received, with what was supplied since:" if account.inputs else "the request as received:"
    yield from _quoted(account.payload)
    if not account.effects:  # once one was begun, nothing is added any more
        yield from input_lines(account.state, account.request_id)


def _quoted(text: bytes) -> Iterator[str]:
    for line in text.decode("utf-8", "backslashreplace").split("\n"):
        yield f"  │ {line}"
