"""Deciding on several requests that are alike: each is shown whole, each gets a vote of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from uuid import UUID

from starlette.responses import Response

from console.desk.asked import AskedPage, read_asked
from console.desk.desk import Visit
from console.desk.document import Substance, substance
from console.desk.voting import Ballot, cast
from policies.errors import FailsafeError, RequestRefused
from policies.tiers import Tier

BULK_CAPS: Final = {Tier.LOW: 20}
"""Requests that one bulk vote may release, by tier. Twenty short documents can be read in one sitting, and a mistake
over twenty of the lowest tier can be put right by hand. Higher tiers are missing: each deserves its own look."""


@dataclass(frozen=True, slots=True)
class BulkKind:
    """What requests have in common that may be decided on together."""

    workflow: str
    tier: Tier
    action_types: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BulkResult:
    """What became of one of the votes: how its request stands, or why it was not taken."""

    operation_id: str
    request_id: UUID
    standing: str
    refused: bool


def bulk_kind(workflow: str, tier: str, found: Substance) -> BulkKind | None:
    """The kind of a request, or None where its tier is always decided on one by one."""
    return BulkKind(workflow, Tier(tier), found.action_types) if tier in BULK_CAPS else None


def bulk_page(visit: Visit) -> Response:
    """Every chosen request whole, one under the other, with one form for all."""
    asked = _alike(visit, visit.query.getlist("approval"))
    return visit.page("bulk.html", asked=asked, kind=_kind(asked[0]), back="/inbox")


def bulk_form(visit: Visit) -> Response:
    """Cast one approving vote each. What is refused is said beside what was done; nothing stops the others."""
    reason = visit.form.get("reason")
    ballots = [Ballot.parse(*_three(text)) for text in dict.fromkeys(visit.form.all("ballot"))]
    asked = _alike(visit, [str(ballot.approval_id) for ballot in ballots])
    results = []
    for ballot, one in zip(ballots, asked, strict=True):
        try:
            standing, refused = cast(visit, ballot, "approve", reason), False
        except FailsafeError as error:
            standing, refused = str(error), True
        results.append(BulkResult(one.asked.operation_id, one.asked.request_id, standing, refused))
    done = not any(result.refused for result in results)
    return visit.page("bulk_result.html", status=200 if done else 409, results=results)


def _alike(visit: Visit, names: list[str]) -> list[AskedPage]:
    """The approval requests named, if a bulk vote may take them.

    Raises:
        RequestRefused: they are not of one kind, too many, or one of them cannot be shown whole.
    """
    if not names:
        raise RequestRefused("choose requests in the inbox first")
    most = max(BULK_CAPS.values())
    if len(names) > most:
        raise RequestRefused(f"at most {most} requests are decided on together; nothing was voted on")
    asked = [read_asked(visit, name, prefix=f"r{number}-") for number, name in enumerate(dict.fromkeys(names), 1)]
    kinds = {_kind(one) for one in asked}
    [kind] = kinds if len(kinds) == 1 else [None]
    if kind is None or len(asked) > BULK_CAPS[kind.tier]:
        raise RequestRefused(
            "these are not decided on together: that takes one workflow, one set of action types and a tier that "
            f"allows it ({', '.join(f'{tier}: up to {cap}' for tier, cap in BULK_CAPS.items())}); nothing was voted on"
        )
    unshown = [one.asked.operation_id for one in asked if not one.document.complete]
    if unshown:
        raise RequestRefused(f"not all of {', '.join(unshown)} can be shown here; nothing was voted on")
    return asked


def _three(text: str) -> tuple[str, str, str]:
    approval_id, _, hashes = text.partition(":")
    proposal_hash, _, review_hash = hashes.partition(":")
    return approval_id, proposal_hash, review_hash


def _kind(one: AskedPage) -> BulkKind | None:
    found = substance(one.asked.document)
    return None if found is None else bulk_kind(one.asked.workflow, one.asked.tier, found)
