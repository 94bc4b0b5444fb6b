"""A consumer on loopback: checks signatures by code of its own, remembers what it got, and misbehaves as told."""

from __future__ import annotations

import base64
import hashlib
import json
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.adapters.provider import serving_app

KEY = bytes(range(7, 39))
SECRET = f"whsec_{base64.b64encode(KEY).decode()}"


def hmac_sha256(key: bytes, message: bytes) -> bytes:
    """RFC 2104, written out, so that it shares nothing with the code under test."""
    block = (hashlib.sha256(key).digest() if len(key) > 64 else key).ljust(64, b"\0")
    inner = hashlib.sha256(bytes(byte ^ 0x36 for byte in block) + message).digest()
    return hashlib.sha256(bytes(byte ^ 0x5C for byte in block) + inner).digest()


def is_signed(headers: Mapping[str, str], body: bytes, key: bytes = KEY) -> bool:
    """Whether the request is signed as Standard Webhooks 1.0 says."""
    content = b".".join([headers["webhook-id"].encode(), headers["webhook-timestamp"].encode(), body])
    wanted = "v1," + base64.b64encode(hmac_sha256(key, content)).decode()
    return wanted in headers["webhook-signature"].split(" ")


@dataclass(frozen=True)
class Delivery:
    """One request."""

    headers: dict[str, str]
    body: bytes

    @property
    def event(self) -> dict[str, Any]:
        """The CloudEvent in it."""
        found: dict[str, Any] = json.loads(self.body)
        return found

    @property
    def place(self) -> tuple[str, int]:
        """Whose event it is, and which one."""
        return self.event["subject"], int(self.event["sequence"])


Answer = Callable[[Delivery], Response | None]
"""What to answer instead of 204; None: 204."""


@dataclass
class Receiver:
    """Its deliveries in the order they came, and how it answers."""

    deliveries: list[Delivery] = field(default_factory=list)
    forged: int = 0
    answer: Answer = lambda _: None
    port: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}/hooks"

    @property
    def places(self) -> list[tuple[str, int]]:
        """What came, in its order, repeats included."""
        return [delivery.place for delivery in self.deliveries]

    def app(self) -> Starlette:
        """The web application; deliveries are taken in threads, so they really overlap."""
        return Starlette(routes=[Route("/hooks", self._take, methods=["POST"])])

    async def _take(self, request: Request) -> Response:
        delivery = Delivery(dict(request.headers), await request.body())
        return await run_in_threadpool(self._handle, delivery)

    def _handle(self, delivery: Delivery) -> Response:
        if not is_signed(delivery.headers, delivery.body):
            self.forged += 1
            return JSONResponse({"detail": "not signed by you"}, 401)
        with self._lock:
            self.deliveries.append(delivery)
        return self.answer(delivery) or Response(status_code=204)


@contextmanager
def receiving() -> Iterator[Receiver]:
    """A receiver that is up until the block ends."""
    receiver = Receiver()
    with serving_app(receiver.app()) as port:
        receiver.port = port
        yield receiver


class Inbox:
    """A consumer that acts on each event once: its id and what it leads to are written in one transaction."""

    def __init__(self) -> None:
        self._database = sqlite3.connect(":memory:", check_same_thread=False)
        self._database.executescript(
            "create table inbox (consumer text, event_id text, primary key (consumer, event_id));"
            "create table told (subject text, sequence text);"
        )
        self._lock = threading.Lock()

    def take(self, event: Mapping[str, Any]) -> bool:
        """Acts on the event, unless it did before."""
        with self._lock, self._database:
            new = self._database.execute(
                "insert into inbox values ('mailer', ?) on conflict do nothing", (event["id"],)
            ).rowcount
            if new:
                self._database.execute("insert into told values (?, ?)", (event["subject"], event["sequence"]))
        return bool(new)

    @property
    def told(self) -> list[tuple[str, int]]:
        """What it acted on, in its order."""
        rows = self._database.execute("select subject, sequence from told order by rowid").fetchall()
        return [(subject, int(sequence)) for subject, sequence in rows]
