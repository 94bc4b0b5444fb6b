"""One suite of checks for every adapter, ours and users': whether it keeps what its semantics promise."""

from __future__ import annotations

import json
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar
from uuid import uuid4

from policies.actions import Action
from policies.compensation import undo_of
from policies.errors import DefinitionError, NotExecuted
from policies.outcomes import Done, Refused, Semantics
from resources.adapters.base import Adapter, opened, secrets_of, with_secret
from resources.adapters.outcome import Unread, snapshot

LONGEST_WAIT = 30.0
"""Seconds the suite waits for an effect to become visible; a longer visibility delay is not checked."""

SLACK = 0.5
"""Seconds a call may exceed its declared timeout: scheduling on a busy machine, not a longer wait."""

AT_ONCE = 6
"""Calls made under one key at the same time."""


Answer = TypeVar("Answer")


class Status(StrEnum):
    """What became of one check."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_PROMISED = "not promised"
    NOT_CHECKED = "not checked"


@dataclass(frozen=True, slots=True)
class Check:
    """One named check; `detail` says what was seen, or why it was not made."""

    name: str
    status: Status
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """All checks of one adapter, in the order they were made."""

    adapter: str
    checks: tuple[Check, ...]

    @property
    def passed(self) -> bool:
        """Nothing that the adapter promises failed."""
        return all(check.status is not Status.FAILED for check in self.checks)

    def check(self) -> None:
        """For tests.

        Raises:
            AssertionError: a check failed; the text lists them all.
        """
        if not self.passed:
            raise AssertionError(str(self))

    def __str__(self) -> str:
        lines = (f"  {check.status:<12}  {check.name}  {check.detail}".rstrip() for check in self.checks)
        return "\n".join((f"conformance of {self.adapter}", *lines))


def conformance(
    adapter: Adapter,
    action: Action,
    *,
    other: Action | None = None,
    count_effects: Callable[[str], int] | None = None,
    undo_by: Adapter | None = None,
) -> Report:
    """Runs every check that the adapter's semantics call for. It makes real effects: point it at a sandbox.

    Args:
        adapter: as it stands in a workflow; its environment variables must be set.
        action: one that the provider carries out.
        other: the same type with other parameters, also acceptable, to see a reused key refused.
        count_effects: how many effects the provider holds under a key, asked of the provider itself.
        undo_by: the adapter that carries out the undo of a reversible action, where it is another one.
    """
    with ExitStack() as stack:
        live = opened(adapter)
        stack.callback(live.close)
        undoing = live
        if undo_by is not None:
            undoing = opened(undo_by)
            stack.callback(undoing.close)
        return Report(type(adapter).__name__, tuple(_Suite(live, action, other, count_effects, undoing).run()))


class _Failed(Exception):
    """A check saw something that the adapter's promise excludes."""


class _Skipped(Exception):
    """A check was not made, for a reason that is not the adapter's fault."""


class _Suite:
    def __init__(
        self,
        live: Adapter,
        action: Action,
        other: Action | None,
        count_effects: Callable[[str], int] | None,
        undoing: Adapter,
    ) -> None:
        self._live = live
        self._undoing = undoing
        self._action = action
        self._other = other
        self._count_effects = count_effects
        self._semantics: Semantics = live.semantics
        self._raised: list[Exception] = []
        self._slowest = 0.0
        self._key = self._new_key()
        self._first: Done | None = None

    def run(self) -> Iterator[Check]:
        promise = self._semantics
        keyed = promise.honours_key is not None or promise.shares_transaction
        yield self._made(
            "a snapshot stays the same while nothing changes", self._snapshot, self._live.takes_snapshots()
        )
        yield self._made("first use executes once", self._first_use)
        yield self._made("the same key replays the same outcome", self._replay, keyed)
        yield self._made("the same key with other parameters is refused", self._mismatch, keyed)
        yield self._made("the same key at the same time makes one effect", self._at_once, keyed)
        yield self._made("an unknown key is looked up as None", self._look_up_unknown, promise.lookup)
        yield self._made("a done effect is found by its key", self._look_up_done, promise.lookup)
        if self._action.action_type.reversible:
            yield self._made("what was done is undone, once", self._undo)
        yield self._made("every call ended within the declared timeout", self._in_time)
        yield self._made("the target names no secret and stays the same", self._target)
        yield self._made("no secret is ever shown", self._secrets)

    def _made(self, name: str, check: Callable[[], str], promised: bool = True) -> Check:
        if not promised:
            return Check(name, Status.NOT_PROMISED)
        try:
            return Check(name, Status.PASSED, check())
        except _Skipped as skipped:
            return Check(name, Status.NOT_CHECKED, str(skipped))
        except _Failed as failed:
            return Check(name, Status.FAILED, str(failed))
        except Exception as error:  # noqa: BLE001  # whatever users' code raises is a failed check
            # Its text may hold the very secret that is looked for.
            return Check(name, Status.FAILED, f"{type(error).__name__} was raised")

    def _snapshot(self) -> str:
        first, again = (self._timed(lambda: snapshot(self._live, self._action)) for _ in range(2))
        unread = next((one for one in (first, again) if isinstance(one, Unread)), None)
        if unread is not None:
            raise _Failed(unread.reason)
        if first != again:
            raise _Failed(f"it was {first!r} and then {again!r}: every approval would be stale")
        return ""

    def _first_use(self) -> str:
        outcome = self._execute(self._live, self._action, self._key)
        if not isinstance(outcome, Done):
            raise _Failed(f"execute answered {_shown(outcome)}; give an action that the provider carries out")
        self._first = outcome
        self._expect_one_effect(self._key)
        return "" if self._count_effects else "effects not counted: give count_effects"

    def _replay(self) -> str:
        first = self._needed_first()
        again = self._execute(self._live, self._action, self._key)
        if again != first:
            raise _Failed(f"the second call answered {_shown(again)}, the first {_shown(first)}")
        self._expect_one_effect(self._key)
        return ""

    def _mismatch(self) -> str:
        if self._other is None:
            raise _Skipped("give other=, the same action type with other parameters")
        self._needed_first()
        outcome = self._execute(self._live, self._other, self._key)
        if isinstance(outcome, Done):
            raise _Failed("a reused key with other parameters was answered as done")
        self._expect_one_effect(self._key)
        return _shown(outcome)

    def _at_once(self) -> str:
        key = self._new_key()
        with ThreadPoolExecutor(AT_ONCE) as threads:
            outcomes = list(threads.map(lambda _: self._execute(self._live, self._action, key), range(AT_ONCE)))
        outcomes.append(self._execute(self._live, self._action, key))
        self._expect_one_effect(key)
        references = {outcome.reference for outcome in outcomes if isinstance(outcome, Done)}
        if not isinstance(outcomes[-1], Done) or len(references) != 1:
            raise _Failed(f"the calls named {len(references)} effects; the last one answered {_shown(outcomes[-1])}")
        if any(isinstance(outcome, Refused) for outcome in outcomes):
            raise _Failed("a call was refused while another one under the same key was done")
        return ""

    def _look_up_unknown(self) -> str:
        found = self._timed(lambda: self._live.look_up(self._new_key()))
        if found is not None:
            raise _Failed(f"look_up answered {_shown(found)} for a key that was never used")
        return ""

    def _look_up_done(self) -> str:
        first = self._needed_first()
        delay = self._semantics.visible_after.total_seconds()
        if delay > LONGEST_WAIT:
            raise _Skipped(f"effects become visible after {delay:g} s; the suite waits {LONGEST_WAIT:g} s at most")
        time.sleep(delay)
        found = self._timed(lambda: self._live.look_up(self._key))
        if not isinstance(found, Done) or found.reference != first.reference:
            raise _Failed(f"look_up answered {_shown(found)}, execute had answered {_shown(first)}")
        return ""

    def _undo(self) -> str:
        """The undo as it would be planned, under its own key, by the rules of keys and look-ups that hold for it."""
        first, key = self._needed_first(), f"{self._key}:undo"
        undo = undo_of(self._action.action_type, json.loads(self._action.model_dump_json()), first.reference).action
        outcome = self._execute(self._undoing, undo, key)
        if not isinstance(outcome, Done):
            raise _Failed(f"{undo.action_type.name} answered {_shown(outcome)}")
        promise = self._undoing.semantics
        if promise.honours_key is not None or promise.shares_transaction:
            again = self._execute(self._undoing, undo, key)
            if again != outcome:
                raise _Failed(f"the second call answered {_shown(again)}, the first {_shown(outcome)}")
        self._expect_one_effect(key)
        delay = promise.visible_after.total_seconds()
        if promise.lookup and delay <= LONGEST_WAIT:
            time.sleep(delay)
            found = self._timed(lambda: self._undoing.look_up(key))
            if not isinstance(found, Done) or found.reference != outcome.reference:
                raise _Failed(f"look_up answered {_shown(found)}, execute had answered {_shown(outcome)}")
        return ""

    def _in_time(self) -> str:
        allowed = self._semantics.timeout.total_seconds()
        if self._slowest > allowed + SLACK:
            raise _Failed(f"a call took {self._slowest:.1f} s; {allowed:g} s are declared")
        return f"slowest {self._slowest:.2f} s of {allowed:g} s"

    def _target(self) -> str:
        target = self._live.target()
        if target != self._live.target() or not target:
            raise _Failed("target() must give the same text every time, and not an empty one")
        if any(secret in target for secret in secrets_of(self._live)):
            raise _Failed("target() contains a secret")
        return ""

    def _secrets(self) -> str:
        """Looks for the real secrets in all that was raised, and for a wrong one in what a failing call shows."""
        secrets = secrets_of(self._live)
        if not secrets:
            raise _Skipped("the adapter declares no secret")
        shown = [repr(self._live), str(self._live), *map(_trace, self._raised)]
        if any(secret in text for secret in secrets for text in shown):
            raise _Failed("a secret shows in repr, str or an exception")
        canary = f"canary-{uuid4().hex}"
        before = len(self._raised)
        try:
            wrong = with_secret(self._live, canary)
        except DefinitionError as error:
            self._raised.append(error)
        else:
            answer = self._execute(wrong, self._action, self._new_key())
            wrong.close()
            if canary in f"{wrong!r} {wrong} {answer!r}":
                raise _Failed("a secret shows in repr, str or an outcome")
        if any(canary in _trace(error) for error in self._raised[before:]):
            raise _Failed("a secret shows in the exception of a call with wrong credentials")
        return ""

    def _execute(self, adapter: Adapter, action: Action, key: str) -> Done | Refused | Exception:
        try:
            outcome = self._timed(lambda: adapter.execute(action, key))
        except Exception as error:  # noqa: BLE001  # any exception is an answer here: not executed, or unknown
            self._raised.append(error)
            return error
        if not isinstance(outcome, (Done, Refused)):
            raise _Failed(f"execute returned {type(outcome).__name__}, neither Done nor Refused")
        return outcome

    def _timed(self, call: Callable[[], Answer]) -> Answer:
        started = time.monotonic()
        try:
            return call()
        finally:
            self._slowest = max(self._slowest, time.monotonic() - started)

    def _expect_one_effect(self, key: str) -> None:
        if self._count_effects is not None and (counted := self._count_effects(key)) != 1:
            raise _Failed(f"the provider holds {counted} effects under one key")

    def _needed_first(self) -> Done:
        if self._first is None:
            raise _Skipped("the first use did not succeed")
        return self._first

    @staticmethod
    def _new_key() -> str:
        return f"conformance:{uuid4()}:1:1"


def _trace(error: Exception) -> str:
    """Everything that a log would hold of the exception, its causes included."""
    return "".join(traceback.format_exception(error))


def _shown(outcome: Done | Refused | Exception | None) -> str:
    """An outcome in a few words; of an exception only its class, since its text may hold a secret."""
    if isinstance(outcome, NotExecuted):
        return "not executed"
    return f"unknown ({type(outcome).__name__})" if isinstance(outcome, Exception) else repr(outcome)
