"""Casting a vote on what was shown. Sent twice it is one vote, and whoever sent it sees what became of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self
from uuid import UUID

from starlette.responses import Response

from console.desk.asked import AskedPage, proposal_response, read_asked
from console.desk.desk import Visit, see
from policies.errors import RequestRefused, VoteRefused
from resources.store.inbox import find_asked
from resources.store.rounds import CastVote, read_rounds
from resources.store.votes import Tally, Vote, cast_vote

_STANDING = {
    "open": "counted: {votes_for} of {votes_needed} votes; it waits for more people",
    "released": "released: the next run carries it out",
    "denied": "denied: nothing will be done",
}


@dataclass(frozen=True, slots=True)
class Ballot:
    """What a form says was shown: the approval request and the two hashes of what stood on the page."""

    approval_id: UUID
    proposal_hash: bytes
    review_hash: bytes

    @classmethod
    def parse(cls, approval_id: str, proposal_hash: str, review_hash: str) -> Self:
        """The ballot of a form's fields.

        Raises:
            RequestRefused: a field is missing or none of our page's.
        """
        try:
            return cls(UUID(approval_id), bytes.fromhex(proposal_hash), bytes.fromhex(review_hash))
        except ValueError:
            raise RequestRefused(
                "the form does not say what was shown, so nothing was voted; open the request again"
            ) from None


def cast(visit: Visit, ballot: Ballot, vote: Vote, reason: str) -> str:
    """Cast one vote and say how the request stands; the same vote again changes nothing and says the same.

    Raises:
        VoteRefused: it was not taken, or this person said something else before.
        NotPermitted: this person may not decide on it.
    """
    try:
        tally = cast_vote(
            visit.desk.database_url,
            visit.person.session,
            approval_id=ballot.approval_id,
            vote=vote,
            proposal_hash=ballot.proposal_hash,
            review_hash=ballot.review_hash,
            reason=reason,
        )
    except VoteRefused:
        said = _said_before(visit, ballot)
        if said is None:
            raise
        if (said.vote, said.proposal_hash, said.review_hash) != (vote, ballot.proposal_hash, ballot.review_hash):
            raise VoteRefused(
                "voted", f"you voted already: {said.vote}. A vote cannot be changed, so this one was not taken"
            ) from None
        return "your vote had been counted before; it is one vote"
    if tally.outcome == "released":
        visit.desk.released(ballot.approval_id)
    return standing(tally)


def standing(tally: Tally) -> str:
    """How an approval request stands after a vote."""
    return _STANDING[tally.outcome].format(votes_for=tally.votes_for, votes_needed=tally.votes_needed)


def vote_form(visit: Visit) -> Response:
    """Take the vote of the proposal page, then show what became of it."""
    approval_id = visit.parts["approval"]
    ballot = Ballot.parse(str(approval_id), visit.form.get("proposal_hash"), visit.form.get("review_hash"))
    reason = visit.form.get("reason").strip()
    vote = _vote(visit.form.get("vote"))
    if vote == "deny" and not reason:
        problem = "Say why you deny it; nothing was voted yet."
        return proposal_response(visit, str(approval_id), problem=problem, status=422)
    cast(visit, ballot, vote, reason)
    return see(f"/approvals/{approval_id}/vote")


def vote_page(visit: Visit) -> Response:
    """What this person voted and how it stands now; safe to open again."""
    shown: AskedPage = read_asked(visit, str(visit.parts["approval"]))
    if shown.own_vote is None:
        return see(f"/approvals/{shown.asked.approval_id}")
    return visit.page("vote.html", shown=shown, own=shown.own_vote)


def _vote(text: str) -> Vote:
    if text == "approve":
        return "approve"
    if text == "deny":
        return "deny"
    raise RequestRefused("choose to approve or to deny; nothing was voted")


def _said_before(visit: Visit, ballot: Ballot) -> CastVote | None:
    asked = find_asked(visit.desk.database_url, str(ballot.approval_id))
    if asked is None:
        return None
    for one in read_rounds(visit.desk.database_url, asked.request_id):
        if one.approval_id == ballot.approval_id:
            return one.vote_of(visit.person.principal_id)
    return None
