"""A way to a database that breaks off at a commit: before the server hears it, or after it did and before we do."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from sqlalchemy import URL, make_url

PORT = 5432

_COMMIT = b"COMMIT\x00"


class Proxy:
    """Passes on what clients and server say, counts the commits of all connections, and breaks off at the `nth`.

    `at_statements`: every statement of the SQL adapter commits by itself.
    """

    def __init__(
        self, connect: Callable[[], socket.socket], folder: Path, nth: int, *, heard: bool, at_statements: bool
    ) -> None:
        self._connect = connect
        self._nth = nth
        self._heard = heard
        self._at_statements = at_statements
        self._seen = 0
        self._lock = threading.Lock()
        self.broken = 0
        """How many connections it broke off."""
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(folder / f".s.PGSQL.{PORT}"))
        self._listener.listen(64)
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Take no more connections."""
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._talk, args=(client, self._connect()), daemon=True).start()

    def _talk(self, client: socket.socket, server: socket.socket) -> None:
        drop = threading.Event()
        back = threading.Thread(target=self._listen, args=(client, server, drop), daemon=True)
        back.start()
        with suppress(OSError):
            server.sendall(_whole_start(client))
            while message := _message(client):
                if self._commits(message) and self._is_it():
                    self.broken += 1
                    drop.set()  # no answer goes back from here on
                    if self._heard:
                        while self._at_statements and message[:1] != b"S":
                            server.sendall(message)  # parse, bind, describe, execute; the server acts on the sync
                            message = _message(client)
                        server.sendall(message)
                        back.join()  # the server has answered, so it has committed
                    break
                server.sendall(message)
        for end in (client, server):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _commits(self, message: bytes) -> bool:
        if self._at_statements:
            return message[:1] == b"P" and b"failsafe_effects" in message
        return message[:1] == b"Q" and _COMMIT in message

    def _is_it(self) -> bool:
        with self._lock:
            self._seen += 1
            return self._seen == self._nth

    def _listen(self, client: socket.socket, server: socket.socket, drop: threading.Event) -> None:
        with suppress(OSError):
            while data := server.recv(65_536):
                if drop.is_set():
                    return
                client.sendall(data)


def _message(end: socket.socket) -> bytes:
    head = _read(end, 5)
    if not head:
        return b""
    (length,) = struct.unpack("!I", head[1:])
    return head + _read(end, length - 4)


def _whole_start(end: socket.socket) -> bytes:
    """The first message of a connection has no type."""
    head = _read(end, 4)
    (length,) = struct.unpack("!I", head)
    return head + _read(end, length - 4)


def _read(end: socket.socket, length: int) -> bytes:
    data = b""
    while len(data) < length:
        part = end.recv(length - len(data))
        if not part:
            return b""
        data += part
    return data


@contextmanager
def breaking_off(url: str, nth: int, *, heard: bool, at_statements: bool = False) -> Iterator[tuple[Proxy, str]]:
    """A proxy before the server of `url` and the URL through it."""
    target = make_url(url)
    with TemporaryDirectory(prefix="failsafe-") as folder:
        proxy = Proxy(lambda: _connected(target), Path(folder), nth, heard=heard, at_statements=at_statements)
        try:
            through = target.set(host=None, port=None).update_query_dict({"host": folder, "port": str(PORT)})
            yield proxy, through.render_as_string(hide_password=False)
        finally:
            proxy.close()


def _connected(target: URL) -> socket.socket:
    """A connection to the server, by its socket or by TCP."""
    if target.host:
        return socket.create_connection((target.host, target.port or PORT))
    found = socket.socket(socket.AF_UNIX)
    found.connect(f"{target.query['host']}/.s.PGSQL.{target.query.get('port', PORT)}")
    return found
