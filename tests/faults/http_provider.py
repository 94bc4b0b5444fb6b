"""The provider that honours keys, reached by real HTTP: it breaks off, fails after the effect, asks for patience."""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote

import dagster as dg

from policies.outcomes import Done
from resources.adapters.base import opened
from resources.adapters.http import HttpAdapter
from tests.faults.providers import CALL_FAULTS, LOOK_UP_FAULTS, Keyed

TOKEN = "FAULTS_PAY_TOKEN"  # the name of a variable
TIMEOUT = 1.0


def over_http(url: str) -> HttpAdapter:
    """The adapter of the provider at `url`."""
    os.environ[TOKEN] = "tk-faults-loopback"
    fields: dict[str, Any] = {
        "url": url,
        "token": dg.EnvVar(TOKEN),
        "hosts": ["127.0.0.1"],
        "paths": {kind: f"/do/{kind}" for kind in ("pay.keyed", "stock.reserve", "stock.unreserve")},
        "look_up_path": "/effects/{key}",
        "refused_field": "code",
        "key_kept_hours": 24 * 30,
        "timeout_seconds": TIMEOUT,
        "connect_seconds": TIMEOUT / 2,
        "concurrency": 2,
    }
    return HttpAdapter(**fields)


class _Handler(BaseHTTPRequestHandler):
    provider: Callable[[], Keyed]
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        kind = self.path.rpartition("/")[2]
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.provider().ledger.writing() as books:
            fault = self.provider().ledger.fault(books, kind, *CALL_FAULTS)
            books.execute("insert into calls values (?, ?)", (self.headers["Idempotency-Key"], kind))
        if fault == "busy":
            now = time.time()
            self._answer(
                429, {}, {"Retry-After": formatdate(now + 2, usegmt=True), "Date": formatdate(now, usegmt=True)}
            )
            return
        if fault == "fail_before":
            self._break_off()
            return
        answer = self.provider().book(self.headers["Idempotency-Key"], kind, body["order_id"])
        if fault == "fail_after":
            self._answer(500, {"detail": "Internal Server Error"})
        elif fault == "lose_answer":
            time.sleep(TIMEOUT * 1.2)
            self._break_off()
        elif fault == "nonsense":
            self._answer(200, ["done", "I think"])
        elif isinstance(answer, Done):
            self._answer(200, {"id": answer.reference})
        else:
            self._answer(402, {"code": answer.code})

    def do_GET(self) -> None:
        key = unquote(self.path.rpartition("/")[2])
        with self.provider().ledger.writing() as books:
            fault = self.provider().ledger.fault(books, key.split(":")[3], *LOOK_UP_FAULTS)
            refused = books.execute("select refused from keys where key = ?", (key,)).fetchone()
        if fault == "deaf":
            self._answer(503, {})
        elif fault == "mumble":
            self._answer(200, ["maybe"])
        elif refused is None:
            self._answer(404, {})
        elif refused[0]:
            self._answer(200, {"code": refused[0]})
        else:
            self._answer(200, {"id": f"ref-{key[-12:]}"})

    def _answer(self, status: int, body: object, headers: dict[str, str] | None = None) -> None:
        content = json.dumps(body).encode()
        self.send_response_only(status)
        for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _break_off(self) -> None:
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the name is the base class's
        """Nobody wants to read it."""


@contextmanager
def serving_keyed(books: str) -> Iterator[str]:
    """The provider over HTTP until the block ends; gives its address."""
    keyed = opened(Keyed(file=books))
    handler = type("Handler", (_Handler,), {"provider": staticmethod(lambda: keyed)})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
