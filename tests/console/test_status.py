"""`status` counts, `ledger` tells and proves."""

from __future__ import annotations

from tests.console.conftest import Terminal
from tests.store.requests import DAY, Superuser


def test_status_counts_by_state_and_batch(terminal: Terminal, superuser: Superuser) -> None:
    """Totals, each workflow's batches, open dead letters, and since when the oldest open request waits."""
    clerk = superuser.person("clerk")
    first = superuser.received(clerk, "order-1")
    superuser.received(clerk, "order-2")
    superuser.asked(clerk, "order-3")
    superuser.run("update requests set batch_key = '2026-01-02' where operation_id = 'order-2'")
    superuser.move(first, "gave_up", "dead_lettered")
    superuser.run(
        "insert into dead_letters (request_id, step, failure, trace_id) values (:id, 'extract', 'x', 'x')", id=first
    )
    status = terminal.json("status")
    assert status["states"] == {"dead_lettered": 1, "received": 1, "awaiting_approval": 1}
    [workflow] = status["workflows"]
    assert workflow["batches"] == {DAY: {"dead_lettered": 1, "awaiting_approval": 1}, "2026-01-02": {"received": 1}}
    assert workflow["open_dead_letters"] == 1
    assert workflow["oldest_waiting"] is not None
    assert terminal.json("status", "--workflow", "other") == {"states": {}, "workflows": [], "restored": None}
    text = terminal.said("status")
    assert "1 awaiting_approval, 1 dead_lettered" in text
    assert "1 open dead letters" in text


def test_what_ended_does_not_wait(terminal: Terminal, superuser: Superuser) -> None:
    """A workflow with nothing but ended requests has no oldest waiting one."""
    request_id = superuser.received(superuser.person("clerk"))
    superuser.run(
        "update requests set state = 'cancelled', last_event = 'cancelled', state_seq = 2, closed_at = now()"
        " where id = :id",
        id=request_id,
    )
    assert terminal.json("status")["workflows"][0]["oldest_waiting"] is None


def test_the_ledger_tells_a_request(terminal: Terminal, superuser: Superuser) -> None:
    """Each event with its actor by name and what it said; the chain is verified."""
    clerk = superuser.person("clerk")
    asked = superuser.asked(clerk, "order-1")
    lead = superuser.person("lead", ["support_lead"])
    terminal.said("deny", asked.id, "--reason", "no receipt", token=lead.token)
    told = terminal.json("ledger", "order-1")
    assert [one["type"] for one in told["events"]] == ["approval.vote"]
    assert told["events"][0]["payload"]["reason"] == "no receipt"
    assert told["chain"] == {"intact": True, "checked": 1, "bad_seq": None, "damage": None}
    text = terminal.said("ledger", asked.id)
    assert "lead" in text
    assert "chain intact: 1 events" in text


def test_a_changed_ledger_is_found(terminal: Terminal, superuser: Superuser) -> None:
    """An edit past the guards is shown as damage, with exit code 1."""
    asked = superuser.asked(superuser.person("clerk"), "order-1")
    lead = superuser.person("lead", ["support_lead"])
    terminal.said("deny", asked.id, "--reason", "no receipt", token=lead.token)
    superuser.run("alter table audit_events disable trigger all")
    superuser.run("update audit_events set payload = '{\"vote\": \"approve\"}' where type = 'approval.vote'")
    result = terminal.run("ledger", "order-1")
    assert result.exit_code == 1
    assert "damaged at event 1 (edit)" in result.stderr
    assert terminal.json("ledger", "order-1", exit_code=1)["chain"]["damage"] == "edit"
