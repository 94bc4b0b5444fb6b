"""Events that were given up are told with why, and are published after all when an operator says so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from resources.outbox.parked import parked_events
from tests.console.conftest import Terminal
from tests.ops import toy
from tests.outbox.conftest import Outbox, new_aggregate
from tests.outbox.test_failures import POISON, refuse_poison
from tests.postgres import Database
from tests.store.test_roles import AUDITOR, INTAKE, REVIEWER, WORKER, refusal


@pytest.fixture
def terminal(outbox: Outbox, tmp_path: Path) -> Terminal:
    """A terminal on the outbox's store."""
    return Terminal(outbox.url, tmp_path)


@pytest.fixture
def token(outbox: Outbox) -> str:
    """An operator's."""
    return toy.principal(outbox.url, "otto", ["operator"], kind="human")


def poisoned(outbox: Outbox) -> tuple[str, str]:
    """An aggregate whose second of three events was parked; its id and that event's."""
    aggregate = new_aggregate()
    outbox.add(aggregate)
    outbox.add(aggregate, payload=POISON)
    outbox.add(aggregate)
    outbox.receiver.answer = refuse_poison
    outbox.publish()
    [event] = parked_events(outbox.url)
    return aggregate, str(event.id)


def test_parked_events_are_listed_with_why(outbox: Outbox, terminal: Terminal) -> None:
    """Which, of what, its place there, and what the receiver said last."""
    aggregate, event = poisoned(outbox)
    [found] = terminal.json("outbox", "list")
    assert (found["id"], found["aggregate"], found["sequence"]) == (event, f"request:{aggregate}", 2)
    assert found["reason"] == "the receiver answered 422 (attempt 8)"
    assert "answered 422" in terminal.said("outbox", "list")
    assert terminal.json("outbox", "list", "--type", "effect.done") == [found]
    assert terminal.json("outbox", "list", "--type", "effect.late") == []


def test_what_would_be_republished_is_said_first(outbox: Outbox, terminal: Terminal, token: str) -> None:
    """Without --yes nothing changes."""
    _, event = poisoned(outbox)
    said = terminal.json("outbox", "republish", event, "--reason", "mended", token=token)
    assert said == {"dry_run": True, "events": [{"id": event, "obstacle": None}]}
    assert "nothing was changed" in terminal.said("outbox", "republish", "--all", "--reason", "mended", token=token)
    assert len(parked_events(outbox.url)) == 1


@pytest.mark.parametrize("chosen", ["named", "--all"])
def test_a_republished_event_arrives_as_itself(outbox: Outbox, terminal: Terminal, token: str, chosen: str) -> None:
    """Under its own id and sequence, once, by who said so; it is parked no more."""
    aggregate, event = poisoned(outbox)
    outbox.receiver.answer = lambda _: None
    before = len(outbox.receiver.places)
    which = event if chosen == "named" else chosen
    terminal.said("outbox", "republish", which, "--reason", "receiver mended", "--yes", token=token)
    assert outbox.publish().published == 1
    assert outbox.receiver.places[before:] == [(f"request/{aggregate}", 2)]
    assert parked_events(outbox.url) == []
    (record,) = outbox.rows("select * from audit_events where type = 'operator.republished'")
    told = json.loads(bytes(record.payload))
    assert (record.stream, told["event"], told["reason"]) == ("system", event, "receiver mended")
    assert record.actor.startswith("principal:")


def test_an_event_that_is_refused_again_is_parked_again(outbox: Outbox, terminal: Terminal, token: str) -> None:
    """With all its attempts used up once more."""
    _, event = poisoned(outbox)
    terminal.said("outbox", "republish", event, "--reason", "try", "--yes", token=token)
    assert len(outbox.publish().parked) == 1
    assert len(outbox.rows("select from audit_events where type = 'outbox.parked'")) == 2


def test_what_is_not_parked_is_left_alone(outbox: Outbox, terminal: Terminal, token: str) -> None:
    """A published event, one that still waits, and one that never was: each with why, and exit code 1."""
    aggregate, _ = poisoned(outbox)
    (published,) = outbox.rows("select id from outbox where aggregate_seq = 1")
    outbox.add(aggregate)
    (waiting,) = outbox.rows("select id from outbox where published_at is null and parked_at is null")
    outbox.execute("update outbox set attempts = 3 where published_at is null and parked_at is null")
    unknown = "00000000-0000-0000-0000-000000000001"
    ids = [str(published.id), str(waiting.id), unknown]
    said = terminal.json("outbox", "republish", *ids, "--reason", "x", "--yes", token=token, exit_code=1)
    assert [one["obstacle"] for one in said["events"]] == [
        "it is published",
        "it is not parked: it is still tried",
        "there is no such event",
    ]
    assert outbox.rows("select from audit_events where type = 'operator.republished'") == []
    assert outbox.rows("select attempts from outbox where id = :id", id=waiting.id) == [(3,)]


def test_only_an_operator_republishes(outbox: Outbox, terminal: Terminal, database: Database) -> None:
    """Neither another principal nor another login."""
    _, event = poisoned(outbox)
    lead = toy.principal(outbox.url, "lena", ["lead"], kind="human")
    refused = terminal.run("outbox", "republish", event, "--reason", "x", "--yes", token=lead)
    assert (refused.exit_code, "no operator" in refused.stderr) == (1, True)
    for role in (INTAKE, WORKER, REVIEWER, AUDITOR):
        assert refusal(database.url(role), "select republish_events('x', '{}', 'x', false)") == "42501"
    assert len(parked_events(outbox.url)) == 1
