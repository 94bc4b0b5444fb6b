"""What happened to one request, with the proof that nothing recorded of it was changed."""

from __future__ import annotations

from dataclasses import dataclass

from policies.audit import AuditEvent, Verification, verify_chain
from resources.store.chains import request_chain
from resources.store.inbox import FoundRequest, find_request
from resources.store.queries import query
from resources.store.reading import reading


@dataclass(frozen=True, slots=True)
class Timeline:
    """A request's events in their order, what their actors are called today, and whether the chain holds."""

    request: FoundRequest
    events: list[AuditEvent]
    names: dict[str, str]
    verification: Verification


def read_timeline(database_url: str, name: str) -> Timeline:
    """The ledger of the request that `name` means (see `find_request`, whose RequestRefused it raises)."""
    with reading(database_url, seconds=60) as connection:
        request = find_request(connection, name)
        chain = request_chain(connection, request.request_id)
        actors = [event.actor for event in chain.events]
        names = {row.actor: row.name for row in connection.execute(query("actor_names"), {"actors": actors})}
    return Timeline(request, chain.events, names, verify_chain(chain.stream, chain.events, chain.head))
