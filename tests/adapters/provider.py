"""A small payment provider on loopback: honours keys, has a look-up, and misbehaves as told."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

TOKEN = "tk-8f2c-loopback"


@dataclass
class Provider:
    """Its ledger, what it saw, and its knobs."""

    effects: list[tuple[str, str]] = field(default_factory=list)
    seen: list[dict[str, str]] = field(default_factory=list)
    answers: list[Response] = field(default_factory=list)
    """Given instead of the usual answer, one a call; nothing is done then."""
    honours_keys: bool = True
    checks_body: bool = True
    forgets: bool = False
    """The look-up finds nothing."""
    delay: float = 0
    port: int = 0
    _stored: dict[str, str] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def reset(self) -> None:
        """Forgets everything and behaves."""
        port = self.port
        self.__init__(port=port)  # type: ignore[misc]  # the running server keeps this very object

    @property
    def url(self) -> str:
        """The base address."""
        return f"http://127.0.0.1:{self.port}/v1"

    def count(self, key: str) -> int:
        """Effects under a key."""
        return sum(1 for made, _ in self.effects if made == key)

    def app(self) -> Starlette:
        """The web application; handlers run in threads, so calls really overlap."""
        return Starlette(
            routes=[
                Route("/v1/pay", self._pay_route, methods=["POST"]),
                Route("/v1/effects/{key:path}", self._find, methods=["GET"]),
            ]
        )

    async def _pay_route(self, request: Request) -> Response:
        from starlette.concurrency import run_in_threadpool

        body = (await request.body()).decode()
        return await run_in_threadpool(self._pay, dict(request.headers), body)

    def _pay(self, headers: dict[str, str], body: str) -> Response:
        self.seen.append(headers)
        if self.answers:
            return self.answers.pop(0)
        if headers.get("authorization") != f"Bearer {TOKEN}":
            return JSONResponse({"detail": f"wrong token: {headers.get('authorization')}"}, 401)
        key = headers["idempotency-key"]
        with self._lock:
            if self.honours_keys and key in self._stored:
                if self.checks_body and self._stored[key] != body:
                    return JSONResponse({"detail": "Idempotency-Key was used with another body"}, 422)
                return JSONResponse({"id": f"pay-{key}", "status": "sent"})
            self._stored[key] = body
            self.effects.append((key, body))
            time.sleep(self.delay)
        if json.loads(body)["amount"]["minor"] < 0:
            return JSONResponse({"code": "declined", "detail": "not a positive amount"}, 402)
        return JSONResponse({"id": f"pay-{key}" if self.honours_keys else f"pay-{len(self.effects)}", "status": "sent"})

    def _find(self, request: Request) -> Response:
        self.seen.append(dict(request.headers))
        if self.answers:
            return self.answers.pop(0)
        key = request.path_params["key"]
        if self.forgets or key not in self._stored:
            return JSONResponse({"detail": "no such effect"}, 404)
        return JSONResponse({"id": f"pay-{key}", "status": "sent"})


@contextmanager
def serving_app(app: Starlette) -> Iterator[int]:
    """Serves on a port of loopback, which it gives, until the block ends."""
    server = uvicorn.Server(
        uvicorn.Config(app, port=0, log_level="critical", lifespan="off", ws="none", access_log=False)
    )
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.005)
    try:
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()


@contextmanager
def serving(provider: Provider) -> Iterator[Provider]:
    """Serves until the block ends."""
    with serving_app(provider.app()) as port:
        provider.port = port
        yield provider


@contextmanager
def raw_server(talk: Callable[[socket.socket], None]) -> Iterator[str]:
    """A server that answers each connection by `talk`: for peers that do not speak proper HTTP. Gives its address."""
    listener = socket.create_server(("127.0.0.1", 0))
    over = threading.Event()

    def run() -> None:
        while not over.is_set():
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                try:
                    talk(connection)
                except OSError:
                    continue  # the client hung up, which is what most of these tests are about

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        over.set()
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()
