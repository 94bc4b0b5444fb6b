"""The chain of audit events: each hash covers the one before it, so that no past event changes unseen."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from hashlib import sha256
from typing import Final

from policies.errors import CanonicalFormError

FIRST: Final = bytes(32)
"""What the first event of a stream has in the place of a previous hash."""


def header(stream: str, seq: int, *, event_type: str, at: datetime, role: str, actor: str) -> bytes:
    """The bytes before the payload, which the database derives from the same columns: one line for each, in UTF-8.

    Raises:
        CanonicalFormError: a line break in a text would let two different headers have the same bytes.
    """
    if any("\n" in text for text in (stream, event_type, role, actor)):
        raise CanonicalFormError(
            "an audit event's stream, type, role and actor are one line each; remove the line break"
        )
    when = at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return f"failsafe/audit/v1\n{stream}\n{seq}\n{event_type}\n{when}\n{role}\n{actor}\n".encode()


def chain_hash(previous: bytes, head: bytes, payload: bytes) -> bytes:
    """SHA-256 of previous hash (32 bytes), header and payload bytes as stored."""
    return sha256(previous + head + payload).digest()


@dataclass(frozen=True, slots=True)
class AuditEvent:
    """One stored event."""

    stream: str
    seq: int
    type: str
    at: datetime
    role: str
    actor: str
    payload: bytes
    previous_hash: bytes
    hash: bytes


@dataclass(frozen=True, slots=True)
class AuditHead:
    """What a stream says its last event is."""

    seq: int
    hash: bytes


class Damage(StrEnum):
    """What is wrong with a chain."""

    EDIT = "edit"  # the event's bytes are not those that were hashed
    GAP = "gap"  # an event is missing before this one
    ORDER = "order"  # an event stands where another should: moved, repeated, or of another stream
    CUT_TAIL = "cut_tail"  # the head knows later events than there are
    BEYOND_HEAD = "beyond_head"  # there are later events than the head knows
    WRONG_HEAD = "wrong_head"  # the head's hash is not the last event's
    MISSING_HEAD = "missing_head"  # there are events and no head


@dataclass(frozen=True, slots=True)
class Verification:
    """The result for one stream: how many events were checked and, where damaged, the first bad seq and what it is."""

    stream: str
    checked: int
    bad_seq: int | None = None
    damage: Damage | None = None

    @property
    def intact(self) -> bool:
        """Nothing is wrong."""
        return self.damage is None


def verify_chain(stream: str, events: Iterable[AuditEvent], head: AuditHead | None) -> Verification:
    """Check a stream's events, in the order of their seq, against each other and against the head."""
    previous, expected = FIRST, 1
    for event in events:
        damage = _damage(stream, event, expected, previous)
        if damage is not None:
            return Verification(stream, expected - 1, expected, damage)
        previous, expected = event.hash, expected + 1
    checked = expected - 1
    if head is None:
        return Verification(stream, checked, 1, Damage.MISSING_HEAD) if checked else Verification(stream, 0)
    if head.seq > checked:
        return Verification(stream, checked, expected, Damage.CUT_TAIL)
    if head.seq < checked:
        return Verification(stream, checked, head.seq + 1, Damage.BEYOND_HEAD)
    if head.hash != previous:
        return Verification(stream, checked, checked, Damage.WRONG_HEAD)
    return Verification(stream, checked)


def _damage(stream: str, event: AuditEvent, expected: int, previous: bytes) -> Damage | None:
    if event.seq > expected:
        return Damage.GAP
    if event.seq < expected or event.stream != stream:
        return Damage.ORDER
    try:
        head = header(event.stream, event.seq, event_type=event.type, at=event.at, role=event.role, actor=event.actor)
    except CanonicalFormError:
        return Damage.EDIT
    intact = event.previous_hash == previous and event.hash == chain_hash(previous, head, event.payload)
    return None if intact else Damage.EDIT
