"""Four kinds of provider: one honours keys, one shares the transaction, one can only be asked, one knows nothing.

Faults that an action type's calls can be told to meet, each so many times (`Ledger.break_down`):

| fault | what happens |
|---|---|
| `lose_answer` | the effect, then nothing is heard of it |
| `fail_after` | the effect, then an error that says nothing about it |
| `fail_before` | no effect, and an error that does not say so |
| `busy` | no effect; try again in a while |
| `nonsense` | the effect, then an answer that is none |
| `die_before`, `die_after` | the process is killed inside the call, before or after the effect |
| `deaf`, `mumble` | the look-up fails, or answers nonsense |
"""

from __future__ import annotations

import os
import signal
import time
from datetime import timedelta
from typing import Any, ClassVar

from policies.actions import Action
from policies.errors import NotExecuted
from policies.outcomes import Done, Refused, Semantics
from resources.adapters.base import Adapter
from resources.adapters.sql import SqlAdapter
from tests.faults.ledger import Ledger

CALL_FAULTS = ("lose_answer", "fail_after", "fail_before", "busy", "nonsense")
DEADLY_FAULTS = ("die_before", "die_after")
LOOK_UP_FAULTS = ("deaf", "mumble")

LAG = 0.3
"""Seconds after which an effect at the provider that can only be asked shows there."""

REFUSED = "refused"
"""Providers refuse to be paid for orders whose id begins so."""

STUCK = "stuck"
"""What was reserved for orders whose id begins so cannot be given back."""

_SECOND = timedelta(seconds=0.5)


class Booked(Adapter):
    """A provider that writes into the books of the schedule."""

    file: str

    @property
    def ledger(self) -> Ledger:
        """Its books."""
        return Ledger(self.file)

    def execute(self, action: Action, key: str) -> Done | Refused:
        kind, order = action.action_type.name, str(getattr(action, "order_id"))  # noqa: B009  # every action has one
        with self.ledger.writing() as books:
            fault = self.ledger.fault(books, kind, *CALL_FAULTS, *DEADLY_FAULTS)
            books.execute("insert into calls values (?, ?)", (key, kind))
        if fault == "die_before":
            os.kill(os.getpid(), signal.SIGKILL)
        if fault == "fail_before":
            raise ConnectionResetError("reset by peer")
        if fault == "busy":
            raise NotExecuted("429 Too Many Requests", retry_after=2.0)
        answer = self.book(key, kind, order)
        if fault == "die_after":
            os.kill(os.getpid(), signal.SIGKILL)
        if fault == "lose_answer":
            raise TimeoutError("no answer in time")
        if fault == "fail_after":
            raise RuntimeError("500 Internal Server Error")
        return answer if fault is None else "done, I think"  # type: ignore[return-value]  # which is the fault

    def book(self, key: str, kind: str, order: str) -> Done | Refused:
        """Make the effect happen; each kind of provider in its own way."""
        if _refuses(kind, order):
            return Refused("declined", "not this order")
        with self.ledger.writing() as books:
            self.ledger.write(books, key, (kind, order), self.semantics.visible_after.total_seconds())
        return Done(f"ref-{key[-12:]}")

    def look_up(self, key: str) -> Done | Refused | None:
        with self.ledger.writing() as books:
            kind = key.split(":")[3]  # workflow, request, ordinal, type, intent
            fault = self.ledger.fault(books, kind, *LOOK_UP_FAULTS)
            found = books.execute(
                "select true from effects where key = ? and seen_from <= ?", (key, time.time())
            ).fetchone()
            refused = books.execute("select refused from keys where key = ? and refused is not null", (key,)).fetchone()
        if fault == "deaf":
            raise ConnectionError("the look-up does not answer")
        if fault == "mumble":
            return "maybe"  # type: ignore[return-value]  # which is the fault
        if refused:
            return Refused("declined", "not this order")
        return Done(f"ref-{key[-12:]}") if found else None


class Keyed(Booked):
    """Honours keys and can be asked."""

    semantics: ClassVar[Semantics] = Semantics(
        honours_key=timedelta(days=30), lookup=True, timeout=_SECOND, concurrency=2
    )

    def book(self, key: str, kind: str, order: str) -> Done | Refused:
        """The first call under a key decides; later ones are told the same."""
        with self.ledger.writing() as books:
            refused = "declined" if _refuses(kind, order) else None
            if books.execute("insert into keys values (?, ?) on conflict do nothing", (key, refused)).rowcount == 1:
                if refused is None:
                    self.ledger.write(books, key, (kind, order))
            else:
                (refused,) = books.execute("select refused from keys where key = ?", (key,)).fetchone()
        return Refused("declined", "not this order") if refused else Done(f"ref-{key[-12:]}")


class Asked(Booked):
    """Knows nothing of keys as such, but finds what was done under one, a moment later."""

    semantics: ClassVar[Semantics] = Semantics(
        lookup=True, visible_after=timedelta(seconds=LAG), timeout=_SECOND, concurrency=2
    )


class Blind(Booked):
    """Offers nothing."""

    semantics: ClassVar[Semantics] = Semantics(timeout=_SECOND, concurrency=2)


BANK_URL = "FAULTS_BANK_URL"
"""The variable with the address of the bank's database."""

BANK_TABLES = "create table payments (type text, order_id text); create index on payments (order_id)"
"""Its books: no unique key."""

BANK_STATEMENTS = {
    "pay.shared": f"insert into payments select 'pay.shared', :order_id where :order_id !~ '^({REFUSED}|{STUCK})'"
    " returning order_id as reference",
    "seat.hold": "insert into payments values ('seat.hold', :order_id) returning order_id as reference",
    "seat.free": "insert into payments values ('seat.free', :order_id) returning order_id as reference",
}


class Bank(SqlAdapter):
    """Writes effect and key in one transaction of its own database."""

    def target(self) -> str:
        """One bank, whatever way leads to it."""
        return "the bank"


def bank() -> Bank:
    """The bank as a workflow names it."""
    import dagster as dg

    values: dict[str, Any] = {"url": dg.EnvVar(BANK_URL), "statements": BANK_STATEMENTS, "timeout_seconds": 4}
    return Bank(**values)


def _refuses(kind: str, order: str) -> bool:
    if kind == "stock.unreserve":
        return order.startswith(STUCK)
    return kind.startswith("pay.") and order.startswith((REFUSED, STUCK))
