"""The operator's commands: they say first what would happen, act only when told to, and as who signed in."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from ops.extract import extract
from resources.adapters.http import HttpAdapter
from tests.console.conftest import Terminal
from tests.operator.desk import EVIDENCE, Desk
from tests.operator.test_cancel import as_dead_lettered, failing
from tests.operator.test_dead_letters import told, unknown
from tests.operator.test_unknown import compensation_failed, key_of
from tests.ops import toy
from tests.ops.jobs import environment, toy_job
from tests.ops.passes import Shop, refund
from tests.postgres import Database
from tests.store.test_roles import AUDITOR, INTAKE, OPERATOR, REVIEWER, WORKER, refusal


@pytest.fixture
def terminal(shop: Shop, tmp_path: Path) -> Terminal:
    """A terminal on the shop's store."""
    return Terminal(shop.url, tmp_path)


@pytest.fixture
def token(shop: Shop) -> str:
    """An operator's."""
    return toy.principal(shop.url, "otto", ["operator"], kind="human")


def two_dead_letters(shop: Shop) -> None:
    """Two requests of which no proposal came, and one that came through."""
    shop.queue({"fine": refund(order="A9")})
    shop.run()
    shop.define(extractor=failing)
    shop.queue({"one": refund(), "two": refund(order="A2")})
    shop.run()
    shop.define(extractor=toy.toy_model)


def test_dead_letters_are_listed(shop: Shop, terminal: Terminal) -> None:
    """With why and where; narrowed by workflow, batch and a text of the failure."""
    two_dead_letters(shop)
    found = terminal.json("dead-letters", "list")
    assert sorted((one["operation_id"], one["state"], one["step"]) for one in found) == [
        ("one", "dead_lettered", "extract"),
        ("two", "dead_lettered", "extract"),
    ]
    assert "no idea" in found[0]["failure"]
    assert terminal.json("dead-letters", "list", "--batch", shop.batch, "--workflow", "refunds") == found
    assert terminal.json("dead-letters", "list", "--failure", "no idea") == found
    for narrowed in (("--batch", "2020-01-01"), ("--workflow", "others"), ("--failure", "%")):
        assert terminal.json("dead-letters", "list", *narrowed) == []
    assert "no idea" in terminal.said("dead-letters", "list")


def test_a_dead_letter_is_shown_whole(shop: Shop, terminal: Terminal) -> None:
    """Workflow, failure, payload, effects with what undoes them, trace, and where its story is told."""
    told(shop)
    request = shop.request("one")
    text = terminal.said("dead-letters", "show", "one")
    for expected in (
        "workflow: refunds, version 1",
        f"trace: {request.trace_id}",
        f"failsafe ledger {request.id}",
        "failed in execute",
        "│ an action failed after one that cannot be undone",
        f"effect: refunds:{request.id}:1:stock.reserve:1 at HookedTill: done",
        "attempts: 1",
        'with: {"order_id":"A1"',
        '"undo": "stock.unreserve"',
        '│ {"order_id":"A1"',
    ):
        assert expected in text.replace('": "A1"', '":"A1"'), expected
    found = terminal.json("dead-letters", "show", request.id)
    assert [effect["state"] for effect in found["effects"]] == ["done", "done", "refused"]
    assert found["payload"] == bytes(request.payload).decode()
    assert terminal.run("dead-letters", "show", "fine").exit_code == 1


@pytest.mark.parametrize(("act", "state"), [("redrive", "received"), ("discard", "failed")])
def test_only_yes_acts(shop: Shop, terminal: Terminal, token: str, act: str, state: str) -> None:
    """Without it the command says what would happen and that nothing was changed."""
    two_dead_letters(shop)
    before = shop.states()
    text = terminal.said("dead-letters", act, "one", "two", "--reason", "fixed", token=token)
    assert "nothing was changed; say --yes to do it" in text
    assert shop.states() == before
    dry = terminal.json("dead-letters", act, "one", "--reason", "fixed", token=token)
    assert dry["dry_run"]
    assert [one["obstacle"] for one in dry["requests"]] == [None]
    assert "2 of 2" in terminal.said("dead-letters", act, "one", "two", "--reason", "fixed", "--yes", token=token)
    assert shop.states() == {"fine": "completed", "one": state, "two": state}
    resolution = {"redrive": "redriven: fixed", "discard": "discarded: fixed"}[act]
    assert [one["resolution"] for one in terminal.json("dead-letters", "list", "--closed")] == [resolution] * 2


def test_all_of_a_batch_or_of_one_cause_at_once(shop: Shop, terminal: Terminal, token: str) -> None:
    """Narrowed instead of named; naming nothing, or both, is wrong usage."""
    two_dead_letters(shop)
    for wrong in ((), ("one", "--batch", shop.batch)):
        assert terminal.run("dead-letters", "redrive", *wrong, "--reason", "fixed", token=token).exit_code == 2
    cause = ("--batch", shop.batch, "--failure", "no idea")
    terminal.said("dead-letters", "redrive", *cause, "--reason", "fixed", "--yes", token=token)
    shop.run()
    assert set(shop.states().values()) == {"completed"}
    none = terminal.said("dead-letters", "redrive", *cause, "--reason", "fixed", "--yes", token=token)
    assert "0 of 0" in none


def test_one_that_stays_is_an_error(shop: Shop, terminal: Terminal, token: str) -> None:
    """The others go all the same, and the exit code says that not everything was done."""
    unknown(shop)
    result = terminal.run("dead-letters", "redrive", "one", "--reason", "again", "--yes", token=token)
    assert result.exit_code == 1
    assert "failsafe unknown list" in result.stdout
    assert terminal.run("dead-letters", "redrive", "nothing", "--reason", "again", token=token).exit_code == 1


def test_a_run_names_the_command_that_clears_it(
    shop: Shop, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a red run says can be typed as it stands, and lists what made it red."""
    as_dead_lettered(shop)
    for name, value in environment(shop).items():
        monkeypatch.setenv(name, value)
    result = toy_job().execute_in_process(partition_key=shop.batch, raise_on_error=False)
    failure = result.get_step_failure_events()[0].step_failure_data
    assert failure.user_failure_data is not None
    [command] = re.findall(r"`failsafe ([^`]+)`", str(failure.user_failure_data.description))
    assert [one["operation_id"] for one in terminal.json(*command.split())] == ["one"]


def test_unknown_effects_are_listed_and_resolved(shop: Shop, desk: Desk, terminal: Terminal, token: str) -> None:
    """With evidence, and one of --done and --not-done, as who signed in."""
    unknown(shop)
    key = key_of(desk)
    [listed] = terminal.json("unknown", "list")
    assert (listed["key"], listed["waits_for"], listed["attempts"]) == (key, "person", 1)
    assert listed["parameters"]["order_id"] == "A1"
    assert key in terminal.said("unknown", "list")
    assert terminal.run("unknown", "resolve", key, "--evidence", EVIDENCE, token=token).exit_code == 2
    assert terminal.run("unknown", "resolve", key, "--done", token=token).exit_code == 2
    refused = terminal.run("unknown", "resolve", key, "--done", "--evidence", "sure", token=token)
    assert (refused.exit_code, "ten characters" in refused.stderr) == (1, True)
    said = terminal.said("unknown", "resolve", key, "--not-done", "--evidence", EVIDENCE, token=token)
    assert f"{key} is not done, as otto says" in said
    assert terminal.json("unknown", "list") == []
    assert "it is known of every effect" in terminal.said("unknown", "list")


def test_cancel_says_what_it_came_to(shop: Shop, desk: Desk, terminal: Terminal, token: str) -> None:
    """Cancelled, or being undone, or too late: each in words."""
    shop.queue({"one": refund("80.00"), "done": refund(order="A2")})
    shop.run()
    late = terminal.run("cancel", "done", "--reason", "wrong", token=token)
    assert (late.exit_code, "completed" in late.stderr) == (1, True)
    assert terminal.run("cancel", "one", token=token).exit_code == 2
    assert "nothing was done and nothing will be" in terminal.said("cancel", "one", "--reason", "wrong", token=token)
    assert terminal.json("cancel", "one", "--reason", "wrong", token=shop.clerk)["came_to"] == "cancelled"


def test_pauses_are_set_listed_and_lifted(shop: Shop, terminal: Terminal, token: str) -> None:
    """With what they hold back; a name that means nothing is an error, and so is resuming what is not paused."""
    shop.queue({"one": refund()})
    shop.run(extract)
    wrong = terminal.run("pause", "provider", "Tiller", "--reason", "stop", token=token)
    assert (wrong.exit_code, wrong.stderr) == (
        1,
        "failsafe: there is no provider called Tiller: nothing was paused; known: HookedTill\n",
    )
    assert "nothing is paused" in terminal.said("pause", "list")
    for words in (
        ("everything",),
        ("workflow", "refunds"),
        ("action-type", "order.refund"),
        ("provider", "HookedTill"),
    ):
        assert "is paused: no effect starts" in terminal.said("pause", *words, "--reason", "stop", token=token)
    shop.run()
    listed: list[dict[str, Any]] = terminal.json("pause", "list")
    assert [one["scope"] for one in listed] == ["everything", "workflow", "action_type", "provider"]
    assert {one["reach"]["held_back"] for one in listed} == {1}
    assert "action-type" in terminal.said("pause", "list")
    for words in (
        ("everything",),
        ("workflow", "refunds"),
        ("action-type", "order.refund"),
        ("provider", "HookedTill"),
    ):
        assert "goes on" in terminal.said("resume", *words, "--reason", "fixed", token=token)
        again = terminal.run("resume", *words, "--reason", "fixed", token=token)
        assert (again.exit_code, "is not paused" in again.stderr) == (1, True)
    shop.run()
    assert shop.states() == {"one": "completed"}


def test_providers_are_paused_by_the_name_that_is_listed(
    shop: Shop, terminal: Terminal, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An HTTP provider is called by its host and port, whatever its adapter's class is."""
    monkeypatch.setenv("TILL_TOKEN", "tk")
    kinds = [kind.action_type.name for kind in shop.workflow.actions] + ["stock.unreserve"]
    till = HttpAdapter(
        url="http://127.0.0.1:9",
        token=dg.EnvVar("TILL_TOKEN"),
        hosts=["127.0.0.1"],
        paths=dict.fromkeys(kinds, "/pay"),
        timeout_seconds=1,
    )
    shop.workflow = replace(shop.workflow, actions=dict.fromkeys(shop.workflow.actions, till))
    shop.queue({"one": refund()})
    shop.run(extract)
    listed = terminal.json("pause", "names")
    assert listed == {
        "everything": ["*"],
        "workflow": ["refunds"],
        "action_type": sorted(kinds),
        "provider": ["127.0.0.1:9"],
    }
    assert "127.0.0.1:9" in terminal.said("pause", "names")
    assert "is paused" in terminal.said("pause", "provider", "127.0.0.1:9", "--reason", "stop", token=token)
    shop.run()
    assert shop.request("one").reason == "not started: paused"


def test_a_pause_names_what_it_cannot_stop(shop: Shop, terminal: Terminal, token: str) -> None:
    """Set while a call is out."""
    said: list[str] = []
    shop.lease_seconds = 30.0
    shop.hooked(before=lambda _key: said.append(terminal.said("pause", "everything", "--reason", "stop", token=token)))
    shop.queue({"one": refund()})
    shop.run()
    assert said[0].splitlines()[1:] == ["1 effects were started before and cannot be stopped:", *shop.calls()]


def test_a_failed_compensation_is_resolved(shop: Shop, terminal: Terminal, token: str) -> None:
    """By evidence."""
    compensation_failed(shop)
    assert terminal.run("resolve-compensation", "one", "--evidence", "ok", token=token).exit_code == 1
    assert "compensated, as otto says" in terminal.said(
        "resolve-compensation", "one", "--evidence", EVIDENCE, token=token
    )
    assert shop.states() == {"one": "compensated"}


def test_who_is_no_operator_is_told_so(shop: Shop, desk: Desk, terminal: Terminal) -> None:
    """Every act, in one line; without a token nothing is asked of the store."""
    unknown(shop)
    lead = toy.principal(shop.url, "lena", ["lead"], kind="human")
    acts = (
        ("dead-letters", "redrive", "one", "--reason", "x"),
        ("dead-letters", "discard", "one", "--reason", "x", "--yes"),
        ("unknown", "resolve", key_of(desk), "--done", "--evidence", EVIDENCE),
        ("resolve-compensation", "one", "--evidence", EVIDENCE),
        ("pause", "everything", "--reason", "x"),
        ("resume", "everything", "--reason", "x"),
    )
    for act in (*acts, ("cancel", "one", "--reason", "x")):
        refused = terminal.run(*act, token=lead)
        assert (refused.exit_code, refused.stderr.count("\n")) == (1, 1), act
        assert "lena" in refused.stderr
        assert "no token" in terminal.run(*act).stderr
    assert shop.states() == {"one": "dead_lettered"}


@pytest.mark.parametrize("secret", ["select failure from dead_letters", "select payload from requests"])
def test_failures_and_payloads_are_the_operators(shop: Shop, database: Database, secret: str) -> None:
    """The auditor counts cases but does not read them; no other login reads a failure at all."""
    as_dead_lettered(shop)
    assert refusal(database.url(OPERATOR), secret) is None
    assert refusal(database.url(AUDITOR), secret) == "42501"
    assert refusal(database.url(AUDITOR), "select count(*), min(opened_at), max(trace_id) from dead_letters") is None
    for role in (INTAKE, REVIEWER, WORKER):
        assert refusal(database.url(role), "select failure, resolution from dead_letters") == "42501"
