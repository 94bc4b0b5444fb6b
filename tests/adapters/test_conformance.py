"""The suite passes adapters that keep their promises, and fails each broken one at the right check."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import dagster as dg
import psycopg
import pytest

from policies.actions import Action
from policies.outcomes import Done, Refused, Semantics
from resources.adapters.base import Adapter, opened
from resources.adapters.conformance import Report, Status, conformance
from resources.adapters.http import HttpAdapter
from resources.adapters.sql import SqlAdapter
from resources.secrets import Secret
from tests.adapters.actions import Pay, pay
from tests.adapters.provider import TOKEN, Provider, serving
from tests.postgres import Database

FIRST = "first use executes once"
REPLAY = "the same key replays the same outcome"
MISMATCH = "the same key with other parameters is refused"
AT_ONCE = "the same key at the same time makes one effect"
UNKNOWN_KEY = "an unknown key is looked up as None"
FOUND = "a done effect is found by its key"
IN_TIME = "every call ended within the declared timeout"
TARGET = "the target names no secret and stays the same"
SECRET = "no secret is ever shown"
SNAPSHOT = "a snapshot stays the same while nothing changes"
ALL = {FIRST, REPLAY, MISMATCH, AT_ONCE, UNKNOWN_KEY, FOUND, IN_TIME, TARGET, SECRET}


def named(report: Report, status: Status) -> set[str]:
    """The checks that ended so."""
    return {check.name for check in report.checks if check.status is status}


@pytest.fixture(autouse=True)
def token(monkeypatch: pytest.MonkeyPatch) -> None:
    """The secret of every adapter here."""
    monkeypatch.setenv("PAY_TOKEN", TOKEN)


@pytest.fixture
def provider() -> Iterator[Provider]:
    """An HTTP provider; its effects take a moment, so that calls at once really meet."""
    with serving(Provider(delay=0.02)) as running:
        yield running


def http(provider: Provider, **fields: Any) -> HttpAdapter:
    """The HTTP adapter of the provider."""
    usual: dict[str, Any] = {
        "url": provider.url,
        "token": dg.EnvVar("PAY_TOKEN"),
        "hosts": ["127.0.0.1"],
        "paths": {"pay.send": "/pay"},
        "look_up_path": "/effects/{key}",
        "key_kept_hours": 24,
        "timeout_seconds": 5,
    }
    return HttpAdapter(**usual | fields)


def test_the_http_adapter_conforms(provider: Provider) -> None:
    """Every check is made and passes, with effects counted at the provider."""
    report = conformance(http(provider), pay(1), other=pay(2), count_effects=provider.count)
    report.check()
    assert named(report, Status.PASSED) == ALL


def test_the_sql_adapter_conforms(empty_database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same for the SQL adapter on a real database, whose secret is an address with a password."""
    address = empty_database.url().replace("+psycopg", "").replace("postgres@", "postgres:unused-pw@")
    monkeypatch.setenv("BANK_URL", address)
    statement = "insert into payments (key, minor) values (:note, :amount_minor) returning minor"
    adapter = SqlAdapter(url=dg.EnvVar("BANK_URL"), statements={"pay.send": statement})
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("create table payments (key text, minor int)")
        live = opened(adapter)
        live.create_key_table()
        live.close()

        def count(key: str) -> int:
            made = connection.execute("select count(*) from failsafe_effects where key = %s", [key]).fetchone()
            rows = connection.execute("select count(*) from payments").fetchone()
            keys = connection.execute("select count(*) from failsafe_effects").fetchone()
            assert rows == keys
            assert made is not None
            return int(made[0])

        report = conformance(adapter, pay(1), other=pay(2), count_effects=count)
    report.check()
    assert named(report, Status.PASSED) == ALL


UNDONE = "what was done is undone, once"


class Unsend(Action, name="pay.unsend", reversible=False):
    """Takes a payment back, by the provider's own number."""

    reference: str


class Send(Action, name="pay.send", reversible=True, undo=Unsend):
    """A payment that can be taken back."""

    amount: int


class Books(Adapter):
    """A provider in this process that honours keys. `undoes`: what it does about an undo."""

    semantics = Semantics(honours_key=timedelta(days=1), lookup=True)
    undoes: str = "once"

    def execute(self, action: Send | Unsend, key: str) -> Done | Refused:
        if isinstance(action, Unsend) and self.undoes == "never":
            return Refused("final", "payments are final")
        if isinstance(action, Unsend) and self.undoes == "again and again":
            return Done(f"u-{uuid.uuid4()}")
        kept = _BOOKS.setdefault(key, action)
        return Done(f"p-{key}") if kept == action else Refused("reused")

    def look_up(self, key: str) -> Done | None:
        return Done(f"p-{key}") if key in _BOOKS and not self.undoes.startswith("unseen") else None


class Undoing(Books):
    """Sees to undos only, and shows none of them."""

    undoes: str = "unseen"


_BOOKS: dict[str, Action] = {}


def test_a_reversible_action_is_undone(provider: Provider) -> None:
    """Do and undo are both carried out, each under its own key; an irreversible action has no such check."""
    report = conformance(Books(), Send(amount=1), other=Send(amount=2))
    report.check()
    assert UNDONE in named(report, Status.PASSED)
    assert UNDONE not in {check.name for check in conformance(http(provider), pay(1)).checks}


@pytest.mark.parametrize("undoes", ["never", "again and again"])
def test_an_undo_that_does_not_work_is_found(undoes: str) -> None:
    """One that is refused, or that is done anew under the same key."""
    report = conformance(Books(undoes=undoes), Send(amount=1), other=Send(amount=2))
    assert named(report, Status.FAILED) == {UNDONE}


def test_an_undo_by_another_adapter_is_held_to_that_ones_promise() -> None:
    """Whoever carries it out promises a look-up that does not find it."""
    report = conformance(Books(), Send(amount=1), other=Send(amount=2), undo_by=Undoing())
    assert named(report, Status.FAILED) == {UNDONE}


def test_what_is_not_promised_is_not_held_against_an_adapter(provider: Provider) -> None:
    """A provider without keys and look-up passes, with those checks reported as not promised."""
    provider.honours_keys = False
    report = conformance(http(provider, key_kept_hours=None, look_up_path=""), pay(1))
    report.check()
    assert named(report, Status.NOT_PROMISED) == {SNAPSHOT, REPLAY, MISMATCH, AT_ONCE, UNKNOWN_KEY, FOUND}


def test_what_the_caller_left_out_is_reported_as_not_checked(provider: Provider) -> None:
    """Without other parameters nothing is said about a reused key."""
    assert named(conformance(http(provider), pay(1)), Status.NOT_CHECKED) == {MISMATCH}


@pytest.mark.parametrize(
    ("knob", "value", "failing"),
    [
        ("honours_keys", False, {REPLAY, MISMATCH, AT_ONCE, FOUND}),
        ("checks_body", False, {MISMATCH}),
        ("forgets", True, {FOUND}),
    ],
)
def test_a_provider_that_breaks_a_promise_fails_its_check(
    provider: Provider, knob: str, value: object, failing: set[str]
) -> None:
    """Each broken promise shows at its own check and the report lists it."""
    setattr(provider, knob, value)
    report = conformance(http(provider), pay(1), other=pay(2), count_effects=provider.count)
    assert named(report, Status.FAILED) == failing
    with pytest.raises(AssertionError, match=f"failed .*{min(failing)}"):
        report.check()


class Memory(Adapter):
    """A correct adapter whose provider is a dictionary; the twins below each break one thing."""

    semantics = Semantics(
        honours_key=timedelta(days=1), lookup=True, timeout=timedelta(milliseconds=300), concurrency=8
    )
    token: Secret
    url: str = "memory"

    def execute(self, action: Pay, key: str) -> Done | Refused:
        if self.token != TOKEN:
            raise PermissionError("wrong credentials")
        with _lock:
            kept = _effects.setdefault(key, action)
            if kept is action or kept == action:
                return Done(f"ref-{key}")
            return Refused("key_reused")

    def look_up(self, key: str) -> Done | None:
        return Done(f"ref-{key}") if key in _effects else None


_effects: dict[str, Action] = {}
_lock = threading.Lock()


class Racing(Memory):
    """Looks first and writes later, as if nobody else were there."""

    def execute(self, action: Pay, key: str) -> Done | Refused:
        known = key in _effects
        time.sleep(0.02)
        if not known:
            _counter[key] = _counter.get(key, 0) + 1
        return super().execute(action, key)


_counter: dict[str, int] = {}


class Refusing(Memory):
    def execute(self, action: Pay, key: str) -> Done | Refused:
        return Refused("closed")


class Vague(Memory):
    def execute(self, action: Pay, key: str) -> Any:
        return {"id": key}


class Slow(Memory):
    def execute(self, action: Pay, key: str) -> Done | Refused:
        time.sleep(0.9)
        return super().execute(action, key)


class Inventing(Memory):
    def look_up(self, key: str) -> Done | None:
        return Done(f"ref-{key}")


class Forgetful(Memory):
    def look_up(self, key: str) -> Done | None:
        return None


class Confused(Memory):
    def look_up(self, key: str) -> Done | None:
        return Done("another") if key in _effects else None


class Telling(Memory):
    def execute(self, action: Pay, key: str) -> Done | Refused:
        if self.token != TOKEN:
            raise PermissionError(f"wrong credentials {self.token}")
        return super().execute(action, key)


class TellingItsCause(Memory):
    def execute(self, action: Pay, key: str) -> Done | Refused:
        try:
            return super().execute(action, key)
        except PermissionError as error:
            try:
                raise ValueError(self.token)
            except ValueError as cause:
                raise error from cause


class TellingInRefusals(Memory):
    def execute(self, action: Pay, key: str) -> Done | Refused:
        if self.token != TOKEN:
            return Refused("denied", f"token {self.token}")
        return super().execute(action, key)


class Boasting(Memory):
    def __repr__(self) -> str:
        return f"Boasting({self.token})"


class Pointing(Memory):
    def target(self) -> str:
        return f"memory?token={self.token}"


class Wandering(Memory):
    def target(self) -> str:
        return f"memory at {time.monotonic_ns()}"


@pytest.mark.parametrize(
    ("broken", "failing"),
    [
        (Memory, set()),
        (Racing, {AT_ONCE}),
        (Refusing, {FIRST, AT_ONCE}),
        (Vague, {FIRST, AT_ONCE, SECRET}),
        (Slow, {IN_TIME}),
        (Inventing, {UNKNOWN_KEY}),
        (Forgetful, {FOUND}),
        (Confused, {FOUND}),
        (Telling, {SECRET}),
        (TellingItsCause, {SECRET}),
        (TellingInRefusals, {SECRET}),
        (Boasting, {SECRET}),
        (Pointing, {TARGET}),
        (Wandering, {TARGET}),
    ],
)
def test_a_broken_adapter_fails_exactly_its_check(broken: type[Memory], failing: set[str]) -> None:
    """Each twin breaks one promise; neither more nor less than that is reported."""
    count = (lambda key: _counter.get(key, 0)) if broken is Racing else None
    report = conformance(broken(token=dg.EnvVar("PAY_TOKEN")), pay(1), other=pay(2), count_effects=count)
    assert named(report, Status.FAILED) == failing, str(report)
    assert TOKEN not in str(report)


def test_a_long_visibility_delay_is_not_waited_for() -> None:
    """An hour's delay is reported, not slept through."""

    class Lagging(Memory):
        semantics = Semantics(honours_key=timedelta(days=1), lookup=True, visible_after=timedelta(hours=1))

    report = conformance(Lagging(token=dg.EnvVar("PAY_TOKEN")), pay(1))
    assert FOUND in named(report, Status.NOT_CHECKED)


class Moving(Memory):
    """Takes a new snapshot every time."""

    def snapshot(self, action: Pay) -> str:
        return str(time.monotonic_ns())


class Blank(Memory):
    """Takes a snapshot of nothing."""

    def snapshot(self, action: Pay) -> str:
        return ""


class Still(Memory):
    """Takes the same snapshot of the same state."""

    def snapshot(self, action: Pay) -> str:
        return action.payee


@pytest.mark.parametrize(("twin", "status"), [(Moving, Status.FAILED), (Blank, Status.FAILED), (Still, Status.PASSED)])
def test_a_snapshot_that_moves_by_itself_is_found_out(twin: type[Memory], status: Status) -> None:
    """Under it every approval would be stale before it could be used."""
    report = conformance(twin(token=dg.EnvVar("PAY_TOKEN")), pay(1), other=pay(2))
    assert SNAPSHOT in named(report, status)
