"""An outbox with events, and a receiver to publish them to."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import dagster as dg
import pytest
import sqlalchemy as sa

from ops.publishing import Published, Publisher, publish_events
from resources.outbox.webhook import Webhook
from tests.outbox.receiver import SECRET, Receiver, receiving
from tests.postgres import Database


def write_event(connection: sa.Connection, aggregate: str, payload: str = "{}") -> int:
    """One event in the caller's transaction, numbered as `record_outcomes` does it; returns its sequence."""
    sequence: int = connection.execute(
        sa.text(
            "with audited as materialized (select event_seq from write_audit(array['request:' || cast(:id as text)],"
            " array['effect.done'], array['test'], array[''::bytea]))"
            " insert into outbox (aggregatetype, aggregateid, type, payload, aggregate_seq)"
            " select 'request', :id, 'effect.done', cast(:payload as jsonb), event_seq from audited"
            " returning aggregate_seq"
        ),
        {"id": aggregate, "payload": payload},
    ).scalar_one()
    return sequence


class Outbox:
    """The outbox of one store, and how it is published to one receiver."""

    def __init__(self, database: Database, receiver: Receiver) -> None:
        self.url = database.url()
        self.receiver = receiver
        self.superuser = sa.create_engine(
            database.url(), poolclass=sa.NullPool, connect_args={"options": "-c search_path=failsafe"}
        )

    def webhook(self, **fields: Any) -> Webhook:
        """The receiver as a webhook."""
        usual: dict[str, Any] = {
            "url": self.receiver.url,
            "secret": dg.EnvVar("HOOK_SECRET"),
            "hosts": ["127.0.0.1"],
            "timeout_seconds": 5,
        }
        return Webhook(**usual | fields)

    def add(self, aggregate: str, events: int = 1, payload: str = "{}") -> None:
        """Events of one aggregate, each in a transaction of its own."""
        for _ in range(events):
            with self.superuser.begin() as connection:
                write_event(connection, aggregate, payload)

    def publish(self, *, uniform: Callable[[], float] = lambda: 0.0, **fields: Any) -> Published:
        """One run of the publisher; without jitter, so that a wait is over at once."""
        return publish_events(Publisher(self.webhook(**fields), self.url, uniform=uniform))

    def execute(self, statement: str, **values: object) -> None:
        """Execute a statement that no duty binds."""
        with self.superuser.begin() as connection:
            connection.execute(sa.text(statement), values)

    def rows(self, statement: str, **values: object) -> list[sa.Row[Any]]:
        """All rows of a query that no duty binds."""
        with self.superuser.begin() as connection:
            return list(connection.execute(sa.text(statement), values))

    def open_events(self) -> int:
        """How many events are neither published nor parked."""
        (row,) = self.rows("select count(*) as events from outbox where published_at is null and parked_at is null")
        count: int = row.events
        return count

    def end_waits(self) -> None:
        """Let the time of every wait and of every claim pass."""
        self.execute("update outbox set claim_until = clock_timestamp() where claim_until is not null")


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A receiver of this test's own."""
    with receiving() as running:
        yield running


@pytest.fixture
def outbox(database: Database, receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> Outbox:
    """An empty outbox whose receiver is up."""
    monkeypatch.setenv("HOOK_SECRET", SECRET)
    return Outbox(database, receiver)


def new_aggregate() -> str:
    """The id of a request."""
    return str(uuid.uuid4())
