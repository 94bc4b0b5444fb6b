"""Defining the receiver: mistakes are told when the location loads, and secrets are given by name only."""

from __future__ import annotations

from typing import Any

import dagster as dg
import pytest

from policies.errors import DefinitionError
from resources.outbox.webhook import Webhook
from resources.store.engine import Duty, engine_for
from tests.outbox.conftest import Outbox, new_aggregate
from tests.outbox.receiver import SECRET
from tests.postgres import Database
from tests.store.test_roles import NOT_PERMITTED, refusal


def webhook(**fields: Any) -> Webhook:
    """A webhook as a user writes it."""
    usual: dict[str, Any] = {
        "url": dg.EnvVar("HOOK_URL"),
        "secret": dg.EnvVar("HOOK_SECRET"),
        "hosts": ["hooks.example"],
    }
    return Webhook(**usual | fields)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"secret": SECRET}, r"field secret: .*dg\.EnvVar"),
        ({"secret": dg.EnvVar(SECRET)}, "name of an environment variable"),
        ({"url": "ftp://hooks.example/x"}, "field url: write it as https://host/path"),
        ({"url": "https://hooks.example/a b"}, "field url: write it as https://host/path"),
        ({"url": "https://hooks.example:port/"}, "field url: write it as https://host/path"),
        ({"url": "https://evil.example/x"}, "host evil.example is not one of hosts"),
        ({"url": "https://hooks.example@evil.example/x"}, "must hold no user"),
        ({"url": "https://hooks.example/x?token=1"}, "query"),
        ({"hosts": []}, "field hosts: write a list"),
        ({"hosts": "hooks.example"}, "field hosts: write a list"),
        ({"source": ""}, "field source"),
        ({"source": "two words"}, "field source"),
        ({"timeout_seconds": 31}, "at most 30"),
        ({"timeout_seconds": 0}, "more than 0"),
        ({"connections": 0}, "at least 1"),
    ],
)
def test_a_wrong_definition_is_told_when_it_is_written(fields: dict[str, Any], problem: str) -> None:
    """With field and remedy, and never with the secret."""
    with pytest.raises(DefinitionError, match=problem) as refused:
        webhook(**fields)
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize(
    ("url", "secret", "problem"),
    [
        ("", SECRET, "set HOOK_URL in the environment"),
        ("https://hooks.example/x", "", "set HOOK_SECRET in the environment"),
        ("https://evil.example/x", SECRET, "is not one of hosts"),
        ("https://hooks.example/x", "guess-me", "24 to 64 random bytes"),
    ],
)
def test_what_the_environment_holds_is_checked_when_it_is_opened(
    url: str, secret: str, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the same rules; a path may be a secret too, so the address is not repeated."""
    monkeypatch.setenv("HOOK_URL", url)
    monkeypatch.setenv("HOOK_SECRET", secret)
    with pytest.raises(DefinitionError, match=problem) as refused:
        webhook().opened()
    assert "guess-me" not in str(refused.value)
    assert "/x" not in str(refused.value)


def test_a_webhook_shows_neither_address_nor_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the definition nor the opened one."""
    monkeypatch.setenv("HOOK_URL", "https://hooks.example/path-that-is-a-secret")
    monkeypatch.setenv("HOOK_SECRET", SECRET)
    one = webhook()
    with one.opened() as receiver:
        shown = f"{one!r} {one} {receiver!r} {receiver}"
    assert SECRET not in shown
    assert "path-that" not in shown


WORKERS_OWN = (
    "select * from claim_events(gen_random_uuid(), 1, '1 minute')",
    "select mark_published(gen_random_uuid(), '{}')",
    "select give_back_events(gen_random_uuid(), '{}', '{}', '{}')",
    "select park_events(gen_random_uuid(), '{}', '{}')",
)
NOBODYS = (
    "update outbox set payload = '{}'",
    "update outbox set published_at = now()",
    "insert into outbox (aggregatetype, aggregateid, type, payload, aggregate_seq) values ('a', 'b', 'c', '{}', 1)",
    "delete from outbox",
    "truncate outbox",
)


def test_a_worker_may_claim_and_mark_and_touch_nothing_else(database: Database) -> None:
    """What an event says is written by the function that records the outcome, and by nobody else."""
    worker = database.url("failsafe_worker")
    assert [refusal(worker, statement) for statement in WORKERS_OWN] == [None] * len(WORKERS_OWN)
    allowed = [one for one in (*NOBODYS, "select * from outbox") if refusal(worker, one) != NOT_PERMITTED]
    assert allowed == []


@pytest.mark.parametrize("role", ["failsafe_intake", "failsafe_reviewer", "failsafe_operator", "failsafe_auditor"])
def test_nobody_but_a_worker_publishes(database: Database, role: str) -> None:
    """Sensors read with the auditor's login, which may see what is due and no more."""
    url = database.url(role)
    allowed = [one for one in (*WORKERS_OWN, *NOBODYS) if refusal(url, one) != NOT_PERMITTED]
    assert allowed == []
    if role == "failsafe_auditor":
        assert refusal(url, "select * from outbox_due") is None


def test_the_store_finds_what_is_due_without_reading_what_was_published(outbox: Outbox) -> None:
    """Published rows stay for good, so looking for the others must not cost more with every one of them."""
    outbox.execute(
        "insert into outbox (aggregatetype, aggregateid, type, payload, aggregate_seq, published_at)"
        " select 'request', g::text, 'effect.done', '{}', 1, now() from generate_series(1, 20000) g"
    )
    outbox.add(new_aggregate(), 2)
    outbox.execute("analyze outbox")
    plan = "\n".join(row[0] for row in outbox.rows("explain select * from outbox_due order by created_at limit 200"))
    assert "outbox_open" in plan
    assert "Seq Scan" not in plan
    with engine_for(Duty.AUDITOR, outbox.url).connect() as connection:
        assert len(connection.exec_driver_sql("select * from outbox_due").all()) == 1
