"""`failsafe ledger`: what happened to a request, as it was recorded."""

from __future__ import annotations

import json
import re
from typing import Annotated, Any

import typer

from console.output import AsJson, print_json, print_lines, print_table
from console.store import store_url
from policies.audit import AuditEvent
from policies.errors import FailsafeError
from resources.store.engine import Duty
from resources.store.timeline import read_timeline

commands = typer.Typer()

_HASH = re.compile(r"\b([0-9a-f]{12})[0-9a-f]{52}\b")
"""A whole hash in a table helps nobody; `--json` has it."""


@commands.command()
def ledger(
    request: Annotated[str, typer.Argument(help="A request id, approval id or operation_id.")], as_json: AsJson = False
) -> None:
    """Tell a request's story from its audit events and prove that none was changed. Exit code 1 if one was."""
    timeline = read_timeline(store_url(Duty.AUDITOR), request)
    verified = timeline.verification
    if as_json:
        print_json(
            {
                "request_id": timeline.request.request_id,
                "workflow": timeline.request.workflow,
                "operation_id": timeline.request.operation_id,
                "state": timeline.request.state,
                "chain": {
                    "intact": verified.intact,
                    "checked": verified.checked,
                    "bad_seq": verified.bad_seq,
                    "damage": verified.damage,
                },
                "events": [
                    {"seq": one.seq, "at": one.at, "type": one.type, "actor": one.actor, "payload": _said(one)}
                    for one in timeline.events
                ],
            }
        )
    else:
        print_lines(
            f"{timeline.request.workflow} {timeline.request.operation_id} ({timeline.request.request_id}): "
            f"{timeline.request.state}"
        )
        print_table(
            ["seq", "at", "event", "actor", "said"],
            [
                (one.seq, one.at, one.type, timeline.names.get(one.actor, one.actor), _told(one))
                for one in timeline.events
            ],
            empty="no event was recorded",
        )
    if not verified.intact:
        raise FailsafeError(
            f"the chain is damaged at event {verified.bad_seq} ({verified.damage}): "
            "this ledger was changed after it was written; compare it with an export"
        )
    if not as_json:
        print_lines(f"chain intact: {verified.checked} events")


def _said(event: AuditEvent) -> Any:
    """The payload as JSON, or as text where it is none."""
    try:
        return json.loads(event.payload)
    except ValueError:
        return event.payload.decode("utf-8", "backslashreplace")


def _told(event: AuditEvent) -> str:
    said = _said(event)
    if not isinstance(said, dict):
        return str(said)
    told = ", ".join(f"{name} {value}" for name, value in said.items() if value is not None)
    return _HASH.sub(r"\1…", told)
