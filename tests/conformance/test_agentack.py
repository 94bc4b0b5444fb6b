"""Traces of our end-to-end runs, exported from the ledger, under agentack: ours pass, and changed ones fail."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from agentack import Action, Policy, evaluate_events  # type: ignore[import-untyped]  # the package ships no types
from agentack.cli import main as agentack  # type: ignore[import-untyped]
from agentack.demo import SCENARIOS, demo_events  # type: ignore[import-untyped]

from resources.store.engine import close_engines
from tests.conformance.shop_day import ENDS, REVIEWED, day_at_the_shop
from tests.conformance.story import Story, read_story
from tests.conformance.trace import demanded, judged, trace_of
from tests.ops.passes import Shop
from tests.postgres import Database, Server

Trace = list[Any]

_NOTHING = "version = 1\n[approval]\nrequire_for = []\n"
"""A policy file of agentack's that demands no approval, which its own writer cannot write."""


@pytest.fixture(scope="module")
def shop(server: Server, migrated: Database, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """The shop at the end of its day."""
    with server.database(template=str(migrated.superuser.database)) as database:
        yield day_at_the_shop(database, tmp_path_factory.mktemp("shop"))
        close_engines()


def story_of(shop: Shop, operation_id: str) -> Story:
    """What the ledger tells of one request of the day."""
    return read_story(shop.url, shop.request(operation_id).id)


def test_the_day_ends_every_way_and_policy_sent_the_right_ones_to_people(shop: Shop) -> None:
    """What the traces are judged by is what policy demanded, so that is pinned first."""
    assert shop.states() == ENDS
    reviewed = {name for name in ENDS if demanded(story_of(shop, name)) == Policy(require_approval_for=("*",))}
    assert reviewed == REVIEWED


@pytest.mark.parametrize("operation_id", ENDS)
def test_a_trace_from_the_ledger_passes(shop: Shop, operation_id: str, tmp_path: Path) -> None:
    """Every request of the day passes as exported, by the function and by the command."""
    story = story_of(shop, operation_id)
    policy = demanded(story)
    report = judged(trace_of(story), tmp_path, policy)
    assert (report.status, report.findings) == ("PASS", ())
    (tmp_path / "policy.toml").write_text(policy.to_toml() if policy.require_approval_for else _NOTHING)
    assert agentack(["check", str(tmp_path / "trace.jsonl"), "--policy", str(tmp_path / "policy.toml")]) == 0


@pytest.mark.parametrize("operation_id", ENDS)
def test_a_trace_tells_what_the_provider_did(shop: Shop, operation_id: str) -> None:
    """What the trace says was executed is what stands in the provider's own books, with the same parameters."""
    executed = [
        (f"{event.action.tool}.{event.action.operation}", event.action.parameters)
        for event in trace_of(story_of(shop, operation_id))
        if event.type == "action_executed"
    ]
    with sqlite3.connect(shop.till) as books:
        rows = books.execute(
            "select type, parameters from effects where instr(key, ?) and type <> 'stock.unreserve' order by rowid",
            (str(shop.request(operation_id).id),),
        ).fetchall()
    books.close()
    assert executed == [(kind, json.loads(parameters)) for kind, parameters in rows]


def place(events: Sequence[Any], kind: str) -> int:
    """Where the first event of a kind is."""
    return [event.type for event in events].index(kind)


def approved(shop: Shop) -> Trace:
    """The trace of an approved request with one action: of its revision that was executed."""
    events = trace_of(story_of(shop, "edited"))
    return [event for event in events if event.action_id is None or event.action_id.startswith("2/")]


def unapproved(events: Trace) -> Trace:
    """Nobody was asked."""
    kept = [event for event in events if not event.type.startswith("approval_")]
    return [replace(event, approval_id=None) if event.type == "action_executed" else event for event in kept]


def swapped(events: Trace) -> Trace:
    """Another amount was sent than was shown."""
    at = place(events, "action_executed")
    sent = events[at].action
    amount = {**sent.parameters["amount"], "minor": sent.parameters["amount"]["minor"] + 1}
    other = replace(sent, parameters={**sent.parameters, "amount": amount})
    return [*events[:at], replace(events[at], action=other), *events[at + 1 :]]


def replayed(events: Trace) -> Trace:
    """The same approval was used a second time."""
    at = place(events, "action_executed")
    return [*events[:at], events[at], *events[at:]]


def late(events: Trace) -> Trace:
    """It was sent after the approval had expired."""
    at = place(events, "action_executed")
    until = events[place(events, "approval_decision")].expires_at
    return [*events[:at], replace(events[at], timestamp=until + timedelta(seconds=1)), *events[at + 1 :]]


def too_early(events: Trace) -> Trace:
    """It was sent before the decision."""
    at, decided = place(events, "action_executed"), place(events, "approval_decision")
    return [*events[:decided], events[at], *events[decided:at], *events[at + 1 :]]


def after_stop(events: Trace) -> Trace:
    """It was sent although everything had been stopped."""
    at = place(events, "action_executed")
    stop = replace(events[-1], type="interrupt", timestamp=events[at].timestamp, reason="stopped by a person")
    return [*events[:at], stop, *events[at:]]


def denied_and_sent(events: Trace) -> Trace:
    """It was sent although it had been denied."""
    at, shown = place(events, "action_blocked"), events[place(events, "approval_requested")]
    sent = replace(events[at], type="action_executed", action=shown.action, reason=None)
    return [*events[:at], sent, *events[at + 1 :]]


def routed_around(events: Trace) -> Trace:
    """What had been denied was done in another way that nobody was asked about."""
    other = Action(tool="voucher", operation="send", parameters=events[0].action.parameters)
    proposed = replace(events[0], action_id="1/2:voucher.send", action=other, timestamp=events[-1].timestamp)
    return [*events[:-1], proposed, replace(proposed, type="action_executed"), events[-1]]


CONTROLS: dict[str, tuple[str, Callable[[Trace], Trace]]] = {
    "ACK001": ("edited", unapproved),
    "ACK002": ("denied", denied_and_sent),
    "ACK003": ("edited", swapped),
    "ACK004": ("edited", replayed),
    "ACK005": ("edited", late),
    "ACK006": ("edited", too_early),
    "ACK007": ("denied", routed_around),
    "ACK008": ("edited", after_stop),
}
"""The eight rules that a trace can break, each with the request whose trace is changed to break it."""


@pytest.mark.parametrize("rule", CONTROLS, ids=lambda rule: f"{rule}-{CONTROLS[rule][1].__name__}")
def test_a_trace_that_breaks_a_rule_fails_by_it(shop: Shop, rule: str, tmp_path: Path) -> None:
    """Each of the eight negative controls, made from a trace of ours that passes, fails and names its rule."""
    operation_id, broken = CONTROLS[rule]
    good = approved(shop) if operation_id == "edited" else trace_of(story_of(shop, operation_id))
    policy = demanded(story_of(shop, operation_id))
    assert judged(good, tmp_path, policy).status == "PASS"
    report = judged(broken(good), tmp_path, policy)
    assert report.status == "FAIL"
    assert set(report.rule_counts) - {rule} <= ({"ACK001"} if rule == "ACK007" else set())
    assert rule in report.rule_counts


@pytest.mark.parametrize("missing", ["approval_requested", "approval_decision", "session_end"])
def test_a_trace_with_a_gap_is_incomplete_and_never_passes(shop: Shop, missing: str, tmp_path: Path) -> None:
    """What the ledger would not tell is missed."""
    events = approved(shop)
    at = place(events, missing)
    report = judged([*events[:at], *events[at + 1 :]], tmp_path, demanded(story_of(shop, "edited")))
    assert (report.status, set(report.rule_counts)) == ("INCOMPLETE", {"ACK009"})


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_controls_that_agentack_ships_end_as_they_should(scenario: str) -> None:
    """The judge is the one that we mean: its own good trace passes and each of its broken ones fails."""
    assert evaluate_events(demo_events(scenario)).status == ("PASS" if scenario == "secure" else "FAIL")
