"""`inbox`, `show`, `approve`, `deny`: one decides on what one saw, as oneself."""

from __future__ import annotations

import json

import pytest

from tests.console.conftest import Terminal
from tests.console.test_review import document
from tests.store.requests import AskedRequest, Person, Superuser


@pytest.fixture
def lead(superuser: Superuser) -> Person:
    """Who may decide."""
    return superuser.person("lead", ["support_lead"])


@pytest.fixture
def asked(superuser: Superuser) -> AskedRequest:
    """A request that waits for a lead."""
    return superuser.asked(superuser.person("clerk", ["support_lead"]), document=json.loads(document()))


def test_the_inbox_lists_what_waits(terminal: Terminal, superuser: Superuser, asked: AskedRequest) -> None:
    """Soonest expiry first; expired, decided and overtaken ones are not in it; filters hold."""
    clerk = superuser.person("other clerk")
    soon = superuser.asked(clerk, "order-soon", seconds=60)
    superuser.asked(clerk, "order-expired", seconds=0.01)
    overtaken = superuser.asked(clerk, "order-overtaken")
    superuser.run("update requests set round = 2, approval_id = null where id = :id", id=overtaken.id)
    superuser.run("select pg_sleep(0.05)")
    assert [one["approval_id"] for one in terminal.json("inbox")] == [str(soon.approval_id), str(asked.approval_id)]
    assert terminal.json("inbox", "--tier", "high") == terminal.json("inbox", "--workflow", "other") == []
    assert len(terminal.json("inbox", "--tier", "medium", "--workflow", "refunds")) == 2
    listed = terminal.said("inbox")
    assert str(soon.approval_id) in listed
    assert "order-expired" not in listed
    assert "nothing waits for a vote" in terminal.said("inbox", "--tier", "high")


def test_show_is_the_same_by_any_name(terminal: Terminal, asked: AskedRequest) -> None:
    """Request id, approval id and operation_id lead to the whole document with both hashes."""
    shown = {terminal.said("show", name) for name in (asked.id, asked.approval_id, asked.operation_id)}
    assert len(shown) == 1
    [text] = shown
    assert f"review hash: {asked.review_hash.hex()}\n" in text
    assert f"proposal hash: {asked.proposal_hash.hex()}\n" in text
    assert "amount: 60.00 EUR (6000 minor units)\n" in text
    assert "\x1b" not in text
    found = terminal.json("show", asked.id)
    assert (found["review_hash"], found["outcome"]) == (asked.review_hash.hex(), "open")
    assert found["document"]["tier"] == "medium"


def test_show_tells_of_a_request_that_nobody_was_asked_about(terminal: Terminal, superuser: Superuser) -> None:
    """What was received and where it stands; an unknown name is one line."""
    request_id = superuser.received(superuser.person("clerk"), "order-new")
    text = terminal.said("show", "order-new")
    assert "order-new  received" in text
    assert '│ {"order_id": "order-new", "amount": "60.00 EUR"}' in text
    found = terminal.json("show", request_id)
    assert (found["state"], found["payload"]) == ("received", '{"order_id": "order-new", "amount": "60.00 EUR"}')
    unknown = terminal.run("show", "nothing")
    assert (unknown.exit_code, unknown.stderr.count("\n")) == (1, 1)


def test_an_ambiguous_name_is_not_guessed(terminal: Terminal, superuser: Superuser) -> None:
    """Two requests with one operation_id (of two tenants) are told apart by their ids."""
    clerk = superuser.person("clerk")
    first = superuser.received(clerk, "order-1")
    superuser.run("update requests set tenant = 'elsewhere'")
    superuser.received(clerk, "order-1")
    result = terminal.run("show", "order-1")
    assert result.exit_code == 1
    assert str(first) in result.stderr
    assert terminal.run("show", first).exit_code == 0


def test_approve_shows_and_asks(terminal: Terminal, superuser: Superuser, asked: AskedRequest, lead: Person) -> None:
    """The document comes first; no, or no answer, is no vote; yes is one."""
    for typed in ("n\n", ""):
        refused = terminal.run("approve", asked.id, token=lead.token, typed=typed)
        assert refused.exit_code == 1
        assert f"review hash: {asked.review_hash.hex()}" in refused.stdout
        assert superuser.state(asked.id) == "awaiting_approval"
    voted = terminal.run("approve", asked.id, "--reason", "checked", token=lead.token, typed="y\n")
    assert (voted.exit_code, voted.stdout.splitlines()[-1]) == (0, "order-1: released: the next run carries it out")
    assert superuser.state(asked.id) == "executing"


def test_approve_by_the_hash_that_was_shown(
    terminal: Terminal, superuser: Superuser, asked: AskedRequest, lead: Person
) -> None:
    """A prefix of at least 12 digits stands for having seen it; a shorter or another one does not."""
    digest = asked.review_hash.hex()
    assert terminal.run("approve", asked.id, "--hash", digest[:11], token=lead.token).exit_code == 2
    changed = terminal.run("approve", asked.id, "--hash", "0" * 12, token=lead.token)
    assert (changed.exit_code, "show it again" in changed.stderr) == (1, True)
    assert terminal.run("approve", asked.id, "--json", token=lead.token).exit_code == 2
    assert superuser.state(asked.id) == "awaiting_approval"
    said = terminal.json("approve", asked.approval_id, "--hash", digest[:12].upper(), token=lead.token)
    assert said == {
        "vote": "approve",
        "voter": "lead",
        "request_id": str(asked.id),
        "outcome": "released",
        "votes_for": 1,
        "votes_needed": 1,
    }


def test_deny_needs_a_reason(terminal: Terminal, superuser: Superuser, asked: AskedRequest, lead: Person) -> None:
    """Without one it is wrong usage; with one the request is rejected and the reason stands in the ledger."""
    assert terminal.run("deny", asked.id, token=lead.token).exit_code == 2
    assert terminal.run("deny", asked.id, "--reason", "no", "--hash", "0" * 12, token=lead.token).exit_code == 1
    assert superuser.state(asked.id) == "awaiting_approval"
    assert "denied" in terminal.said("deny", asked.id, "--reason", "not the customer's order", token=lead.token)
    assert superuser.state(asked.id) == "rejected"
    assert "not the customer's order" in terminal.said("ledger", asked.id)


def test_what_was_decided_takes_no_more_votes(terminal: Terminal, asked: AskedRequest, lead: Person) -> None:
    """The refusal says how it ended."""
    terminal.said("deny", asked.id, "--reason", "no", token=lead.token)
    late = terminal.run("approve", asked.id, token=lead.token, typed="y\n")
    assert (late.exit_code, late.stderr) == (1, "failsafe: order-1 takes no votes any more: denied\n")


def test_who_may_not_decide_is_told_so(terminal: Terminal, superuser: Superuser, asked: AskedRequest) -> None:
    """Somebody without the role is refused by the database, in one line, after seeing it."""
    stranger = superuser.person("stranger", ["clerk"])
    result = terminal.run("approve", asked.id, token=stranger.token, typed="y\n")
    assert result.exit_code == 1
    assert "stranger may not decide on this request" in result.stderr
    assert superuser.state(asked.id) == "awaiting_approval"


def test_a_document_that_is_not_its_hash_is_not_shown(
    terminal: Terminal, superuser: Superuser, asked: AskedRequest, lead: Person
) -> None:
    """Should anybody get past the guards and change what is stored, nobody is asked to approve it."""
    superuser.run("alter table approval_requests disable trigger all")
    superuser.run("update approval_requests set review_document = review_document || ' '")
    for command in (["show", asked.id], ["approve", asked.id]):
        result = terminal.run(*command, token=lead.token, typed="y\n")
        assert result.exit_code == 1
        assert "does not match its hash" in result.stderr
    assert superuser.state(asked.id) == "awaiting_approval"
