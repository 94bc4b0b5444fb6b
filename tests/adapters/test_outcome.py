"""Whatever an adapter returns or raises becomes a value that can be stored."""

from __future__ import annotations

import math
from datetime import date
from typing import Any

import dagster as dg
import pytest

from policies.actions import Action
from policies.errors import NotExecuted
from policies.outcomes import Done, Refused, Semantics
from resources.adapters.base import Adapter, opened
from resources.adapters.outcome import MAX_RESULT_BYTES, MAX_TEXT, Unknown, call, look_up
from resources.secrets import Secret
from tests.adapters.actions import pay

CANARY = "sk-canary-4711"


class Scripted(Adapter):
    """Answers as the test says."""

    semantics = Semantics(lookup=True)
    token: Secret

    def execute(self, action: Action, key: str) -> Any:
        return _answer()

    def look_up(self, key: str) -> Any:
        return _answer()


_script: list[Any] = []


def _answer() -> Any:
    answer = _script.pop()
    if isinstance(answer, BaseException):
        raise answer
    return answer


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Calls the adapter with a scripted answer, both ways."""
    monkeypatch.setenv("SCRIPTED_TOKEN", CANARY)
    live = opened(Scripted(token=dg.EnvVar("SCRIPTED_TOKEN")))

    def asked(answer: Any) -> Any:
        _script[:] = [answer, answer]
        executed, found = call(live, pay(), "key"), look_up(live, "key")
        assert repr(executed).split("(")[0] == repr(found).split("(")[0]
        return executed

    yield asked
    live.close()


class Silent(Exception):
    """An exception whose text cannot be made."""

    def __str__(self) -> str:
        raise ValueError("no text")


def test_definite_answers_are_kept(ask: Any) -> None:
    """Done and Refused pass through."""
    assert ask(Done("r-1", {"status": "sent"})) == Done("r-1", {"status": "sent"})
    assert ask(Refused("declined", "no funds")) == Refused("declined", "no funds")


def test_any_exception_is_unknown(ask: Any) -> None:
    """Nobody knows what happened when the adapter raises."""
    for error in (TimeoutError("read"), ValueError("bad"), KeyError("k"), RecursionError(), dg.DagsterError("x")):
        outcome = ask(error)
        assert isinstance(outcome, Unknown)
        assert outcome.reason.startswith(type(error).__name__)
    assert ask(Silent()) == Unknown("Silent")


def test_an_interrupt_is_no_outcome(ask: Any) -> None:
    """Interrupts end the worker; the effect is found unknown by the next one."""
    with pytest.raises(KeyboardInterrupt):
        ask(KeyboardInterrupt())


def test_not_executed_keeps_its_wait_only_where_it_is_one(ask: Any) -> None:
    """A wait must be a finite number of seconds, zero included; a year is the most."""
    never: list[Any] = [-1, math.inf, math.nan, "5", None]
    year = 365 * 86_400.0
    long = ((one, year) for one in (year, 1e300, 10**18))
    for given, kept in [(0, 0.0), (2.5, 2.5), *long, *((one, None) for one in never)]:
        outcome = ask(NotExecuted("slow down", retry_after=given))
        assert isinstance(outcome, NotExecuted)
        assert (outcome.retry_after, str(outcome)) == (kept, "slow down")


def test_another_type_of_answer_is_unknown(ask: Any) -> None:
    """An adapter that answers neither Done nor Refused may have done it."""
    for answer in ("done", {"id": 1}, True):
        assert isinstance(ask(answer), Unknown)


def test_none_means_unknown_from_execute_and_absent_from_look_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a look-up may say that there is nothing."""
    monkeypatch.setenv("SCRIPTED_TOKEN", CANARY)
    live = opened(Scripted(token=dg.EnvVar("SCRIPTED_TOKEN")))
    _script[:] = [None, None]
    assert isinstance(call(live, pay(), "key"), Unknown)
    assert look_up(live, "key") is None
    live.close()


def test_no_outcome_holds_the_secret(ask: Any) -> None:
    """A provider that echoes the credential does not get it into the store."""
    for answer in (
        Done(CANARY, {"echo": [CANARY, {CANARY: f"Bearer {CANARY}"}]}),
        Refused(CANARY, f"token {CANARY} is wrong"),
        NotExecuted(f"token {CANARY} is wrong"),
        RuntimeError(f"401 for {CANARY}"),
    ):
        outcome = ask(answer)
        assert CANARY not in f"{outcome!r} {outcome}"
        assert "***" in f"{outcome!r} {outcome}"


def test_outcomes_hold_only_what_the_database_can_store(ask: Any) -> None:
    """NUL and lone surrogates would make a done effect unrecordable, so they are replaced."""
    outcome = ask(Done("r\0\ud800", {"a\0": ["b\ud800"], "day": date(2026, 11, 29)}))
    assert isinstance(outcome, Done)
    assert outcome.result == {"a\ufffd": ["b\ufffd"], "day": "2026-11-29"}
    for text in (outcome.reference, ask(Refused("c\0", "\ud800")).reason, ask(ValueError("\0\ud800")).reason):
        text.encode()
        assert "\0" not in text


def test_outcomes_are_bounded_and_the_effect_is_never_lost(ask: Any) -> None:
    """A huge or unwritable result is dropped; that the effect was done is not."""
    circular: dict[str, Any] = {}
    circular["self"] = circular
    results: list[Any] = [{"x": "y" * MAX_RESULT_BYTES}, circular, {"x": math.nan}, {(1, 2): 3}]
    for result in results:
        outcome = ask(Done("r-1", result))
        assert isinstance(outcome, Done)
        assert "omitted" in outcome.result
    assert ask(Done("r-1", [1])) == Done("r-1", {"value": [1]})  # type: ignore[arg-type]
    assert ask(Done(17)) == Done("17")  # type: ignore[arg-type]
    assert len(ask(RuntimeError("z" * 10_000)).reason) == MAX_TEXT
