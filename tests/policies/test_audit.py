"""The chain of audit events finds what was done to it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from hashlib import sha256

import pytest

from policies.audit import FIRST, AuditEvent, AuditHead, Damage, Verification, chain_hash, header, verify_chain
from policies.errors import CanonicalFormError

AT = datetime(2026, 3, 10, 12, 0, 0, 5, tzinfo=UTC)


def chain(length: int, stream: str = "request/1") -> tuple[list[AuditEvent], AuditHead]:
    """A stream of intact events with its head."""
    events: list[AuditEvent] = []
    previous = FIRST
    for seq in range(1, length + 1):
        at, payload = AT + timedelta(seconds=seq), f'{{"n":{seq}}}'.encode()
        head = header(stream, seq, event_type="noted", at=at, role="failsafe_worker", actor="worker-1")
        digest = chain_hash(previous, head, payload)
        events.append(AuditEvent(stream, seq, "noted", at, "failsafe_worker", "worker-1", payload, previous, digest))
        previous = digest
    return events, AuditHead(length, previous)


def verify(events: list[AuditEvent], head: AuditHead | None) -> tuple[int | None, Damage | None]:
    """Where the chain is first bad, and how."""
    result = verify_chain("request/1", events, head)
    return result.bad_seq, result.damage


def test_the_bytes_of_a_hash_are_fixed() -> None:
    """Header and hash are the bytes that the database derives by itself."""
    expected = b"failsafe/audit/v1\nrequest/1\n7\nvoted\n2026-03-10T12:00:00.000005Z\nfailsafe_reviewer\ngr\xc3\xbcn\n"
    assert header("request/1", 7, event_type="voted", at=AT, role="failsafe_reviewer", actor="grün") == expected
    assert chain_hash(FIRST, expected, b"{}") == sha256(bytes(32) + expected + b"{}").digest()


def test_an_instant_has_one_form() -> None:
    """The same instant in another zone has the same header."""
    there = AT.astimezone(timezone(timedelta(hours=5, minutes=30)))
    one, other = (header("s", 1, event_type="t", at=at, role="r", actor="a") for at in (AT, there))
    assert one == other


@pytest.mark.parametrize("field", ["stream", "event_type", "role", "actor"])
def test_a_line_break_in_a_header_raises(field: str) -> None:
    """No text can pretend to be the next line."""
    texts = {"stream": "s", "event_type": "t", "role": "r", "actor": "a"} | {field: "x\ny"}
    with pytest.raises(CanonicalFormError, match="line break"):
        header(texts["stream"], 1, event_type=texts["event_type"], at=AT, role=texts["role"], actor=texts["actor"])


@pytest.mark.parametrize("length", [0, 1, 5])
def test_an_intact_chain_passes(length: int) -> None:
    """Nothing is found where nothing was done."""
    events, head = chain(length)
    result = verify_chain("request/1", events, head if length else None)
    assert result == Verification("request/1", length)
    assert result.intact


@pytest.mark.parametrize(
    "change",
    [
        {"payload": b'{"n":9}'},
        {"type": "forged"},
        {"at": AT},
        {"role": "failsafe_operator"},
        {"actor": "worker-2"},
        {"actor": "worker\n1"},
        {"previous_hash": bytes(32)},
        {"hash": bytes(32)},
    ],
)
def test_an_edit_is_found_where_it_is(change: dict[str, object]) -> None:
    """Changing any part of an event is found at that event."""
    events, head = chain(5)
    events[2] = replace(events[2], **change)  # type: ignore[arg-type]  # one field of any type
    assert verify(events, head) == (3, Damage.EDIT)


def test_a_rehashed_edit_is_found_at_the_next_event() -> None:
    """An edit with its own hash made right no longer fits the event after it."""
    events, head = chain(5)
    old = events[2]
    forged = header(old.stream, old.seq, event_type="forged", at=old.at, role=old.role, actor=old.actor)
    events[2] = replace(old, type="forged", hash=chain_hash(old.previous_hash, forged, old.payload))
    assert verify(events, head) == (4, Damage.EDIT)


def test_a_rehashed_history_is_found_by_the_head() -> None:
    """A history written anew is intact in itself and ends in another hash than the head's."""
    _, head = chain(5)
    events, _ = chain(5)
    previous = FIRST
    for index, event in enumerate(events):
        head_bytes = header(
            event.stream, event.seq, event_type="forged", at=event.at, role=event.role, actor=event.actor
        )
        digest = chain_hash(previous, head_bytes, event.payload)
        events[index] = replace(event, type="forged", previous_hash=previous, hash=digest)
        previous = digest
    assert verify(events, head) == (5, Damage.WRONG_HEAD)


def test_a_missing_event_is_a_gap() -> None:
    """Deleting from the middle or from the front is found where the event should be."""
    events, head = chain(5)
    assert verify(events[:2] + events[3:], head) == (3, Damage.GAP)
    assert verify(events[1:], head) == (1, Damage.GAP)


def test_a_missing_event_with_its_numbers_closed_up_is_found() -> None:
    """Renumbering what follows a deletion does not hide it."""
    events, head = chain(5)
    closed = events[:2] + [replace(event, seq=event.seq - 1) for event in events[3:]]
    assert verify(closed, head) == (3, Damage.EDIT)


def test_a_cut_tail_is_found_by_the_head() -> None:
    """Dropping the last events is found although what is left is intact."""
    events, head = chain(5)
    assert verify(events[:-1], head) == (5, Damage.CUT_TAIL)
    assert verify([], head) == (1, Damage.CUT_TAIL)


def test_swapped_events_are_found() -> None:
    """Two events in each other's place are found, whether their numbers moved with them or not."""
    events, head = chain(5)
    swapped = [events[0], events[2], events[1], *events[3:]]
    assert verify(swapped, head) == (2, Damage.GAP)
    renumbered = [replace(event, seq=seq) for seq, event in enumerate(swapped, start=1)]
    assert verify(renumbered, head) == (2, Damage.EDIT)


def test_a_repeated_or_foreign_event_is_out_of_order() -> None:
    """An event that stands twice, or comes from another stream, is found."""
    events, head = chain(3)
    foreign, _ = chain(3, "request/2")
    assert verify([events[0], events[0], *events[1:]], head) == (2, Damage.ORDER)
    assert verify([events[0], foreign[1], events[2]], head) == (2, Damage.ORDER)


def test_a_wrong_head_is_found() -> None:
    """A head with another hash, an older head and a missing head are told apart."""
    events, head = chain(3)
    assert verify(events, replace(head, hash=bytes(32))) == (3, Damage.WRONG_HEAD)
    assert verify(events, AuditHead(2, events[1].hash)) == (3, Damage.BEYOND_HEAD)
    assert verify(events, None) == (1, Damage.MISSING_HEAD)
