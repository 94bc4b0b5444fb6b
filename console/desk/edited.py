"""What became of an edit, as the ledger tells it; safe to open again."""

from __future__ import annotations

import json
from dataclasses import dataclass

from starlette.responses import Response

from console.desk.asked import require_sight
from console.desk.desk import Visit, see
from console.desk.node import Node
from policies.errors import RequestRefused
from policies.strict_json import read_json
from resources.store.account import read_account
from resources.store.inbox import Asked, find_asked
from resources.store.timeline import read_timeline


@dataclass(frozen=True, slots=True)
class OwnEdit:
    """An edit that this person made of an approval request."""

    revision: int
    reason: str
    proposal_hash: str


def own_edit(visit: Visit, asked: Asked) -> OwnEdit | None:
    """What this person made of an approval request; None: they did not change it."""
    for event in read_timeline(visit.desk.database_url, str(asked.request_id)).events:
        if event.type == "proposal.edited" and event.actor == f"principal:{visit.person.principal_id}":
            told = json.loads(event.payload)
            if told["approval"] == str(asked.approval_id):
                return OwnEdit(told["revision"], told["reason"], told["proposal"])
    return None


def edited_page(visit: Visit) -> Response:
    """The new revision, its parameters while it is the latest, and what comes next."""
    asked = find_asked(visit.desk.database_url, str(visit.parts["approval"]))
    if asked is None:
        raise RequestRefused("nobody was asked about this request")
    require_sight(visit, asked.request_id)
    made = own_edit(visit, asked)
    if made is None:
        return see(f"/approvals/{asked.approval_id}")
    account = read_account(visit.desk.database_url, str(asked.request_id))
    is_latest = account.output is not None and account.proposal_hash == made.proposal_hash
    output = Node(read_json(account.output)) if is_latest and account.output else Node(None, None)
    return visit.page("edited.html", asked=asked, made=made, output=output, state=account.state)
