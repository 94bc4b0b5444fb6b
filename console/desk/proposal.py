"""One request: what a reviewer decides on, or what is known of it where nobody is asked; and its story."""

from __future__ import annotations

import json
from uuid import UUID

from starlette.responses import Response

from console.desk.asked import proposal_response, require_sight
from console.desk.desk import Visit, see
from console.desk.offers import cancel_offer
from console.desk.operators import is_operator
from policies.audit import AuditEvent
from policies.errors import RequestRefused
from policies.redaction import visible
from resources.store.account import read_account
from resources.store.inbox import find_asked
from resources.store.timeline import read_timeline


def find_form(visit: Visit) -> Response:
    """Go to the request that somebody named; which one that is, is decided by its own page."""
    name = visit.query.get("name", "").strip()
    if not name:
        raise RequestRefused("say which: a request id, an approval id or an operation_id")
    account = read_account(visit.desk.database_url, name)
    require_sight(visit, account.request_id)
    return see(f"/requests/{account.request_id}")


def request_page(visit: Visit) -> Response:
    """The latest approval request of a request, or its account where nobody was ever asked."""
    request_id: UUID = visit.parts["request"]
    require_sight(visit, request_id)
    asked = find_asked(visit.desk.database_url, str(request_id))
    if asked is not None:
        return see(f"/approvals/{asked.approval_id}")
    account = read_account(visit.desk.database_url, str(request_id))
    return visit.page(
        "account.html", account=account, cancel=cancel_offer(visit, request_id), overseer=is_operator(visit)
    )


def proposal_page(visit: Visit) -> Response:
    """All of what is asked, and the form to vote with where this person may."""
    return proposal_response(visit, str(visit.parts["approval"]))


def timeline_page(visit: Visit) -> Response:
    """The request's ledger, verified as it is read."""
    request_id: UUID = visit.parts["request"]
    require_sight(visit, request_id)
    timeline = read_timeline(visit.desk.database_url, str(request_id))
    events = [(one, timeline.names.get(one.actor, one.actor), _said(one)) for one in timeline.events]
    return visit.page("timeline.html", request=timeline.request, events=events, chain=timeline.verification)


def _said(event: AuditEvent) -> list[tuple[str, str]]:
    """The payload as names and values, or as it is where it has none."""
    text = event.payload.decode("utf-8", "backslashreplace")
    try:
        said = json.loads(text)
    except ValueError:
        said = text
    if not isinstance(said, dict):
        return [("", visible(text))]
    return [
        (visible(name), visible(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)))
        for name, value in said.items()
        if value is not None
    ]
