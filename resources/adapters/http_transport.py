"""HTTP with one deadline for the whole exchange, and certainty about whether any of the request was sent.

A timeout per socket operation, which is what HTTP clients offer, lets a peer that drips bytes outlast any lease.
"""

from __future__ import annotations

import json
import ssl
import time
from collections.abc import Iterable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpcore

from policies.errors import NotExecuted, OutcomeUnknown


@dataclass(frozen=True, slots=True)
class Answer:
    """A provider's response: header names in lower case; `content` None where the body is no JSON object or too large.

    An empty body counts as an empty object.
    """

    status: int
    headers: dict[str, str]
    content: dict[str, Any] | None


@dataclass(slots=True)
class Exchange:
    """One request and its response: until when (monotonic seconds), and whether any byte of it may have been sent."""

    deadline: float
    connect_seconds: float
    sent: bool = False

    def remaining(self) -> float:
        """Seconds left; zero or less when the time is over."""
        return self.deadline - time.monotonic()


_current: ContextVar[Exchange] = ContextVar("failsafe_http_exchange")
"""The exchange that this thread is in; a pooled connection serves many, one after the other."""


class Transport:
    """Connections to one provider, shared by threads. Follows no redirect, uses no proxy, decompresses nothing."""

    def __init__(
        self, *, timeout_seconds: float, connect_seconds: float, max_response_bytes: int, connections: int
    ) -> None:
        self._timeout_seconds = timeout_seconds
        self._connect_seconds = connect_seconds
        self._max_response_bytes = max_response_bytes
        self._pool = httpcore.ConnectionPool(max_connections=connections, network_backend=_DeadlineBackend())

    def close(self) -> None:
        """Closes all connections."""
        self._pool.close()

    def exchange(self, method: str, url: str, headers: dict[str, str], body: bytes | None) -> Answer:
        """Sends one request and reads its answer, never longer than the timeout.

        Raises:
            NotExecuted: it failed before the first byte of the request was sent.
            OutcomeUnknown: it failed after that.
        """
        sent = {"Host": urlsplit(url).netloc, **headers}
        if body is not None:
            sent["Content-Length"] = str(len(body))
        exchange = Exchange(time.monotonic() + self._timeout_seconds, self._connect_seconds)
        token = _current.set(exchange)
        try:
            with self._pool.stream(
                method,
                url,
                headers=list(sent.items()),
                content=body,
                extensions={"timeout": {"pool": self._timeout_seconds}},
            ) as response:
                content = self._read(response)
                return Answer(response.status, _headers(response), content)
        except (httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProtocolError, OSError) as error:
            # The text of a transport error may repeat what was sent, so only its kind is told.
            if exchange.sent:
                raise OutcomeUnknown(f"{type(error).__name__} after the request was sent") from None
            raise NotExecuted(f"{type(error).__name__} before the request was sent") from None
        finally:
            _current.reset(token)

    def _read(self, response: httpcore.Response) -> dict[str, Any] | None:
        content = bytearray()
        for chunk in response.iter_stream():
            content += chunk
            if len(content) > self._max_response_bytes:
                return None
        try:
            parsed = json.loads(content) if content else {}
        except (ValueError, RecursionError):
            return None
        return parsed if isinstance(parsed, dict) else None


def _headers(response: httpcore.Response) -> dict[str, str]:
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers}


class _DeadlineStream(httpcore.NetworkStream):
    """A connection whose every operation ends by the deadline of the exchange it serves."""

    def __init__(self, inner: httpcore.NetworkStream) -> None:
        self._inner = inner

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ARG002  # the deadline decides
        """Bytes from the peer, or `httpcore.ReadTimeout` at the deadline."""
        remaining = _current.get().remaining()
        if remaining <= 0:
            raise httpcore.ReadTimeout("the time for the whole call is over")
        return self._inner.read(max_bytes, remaining)

    def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ARG002  # likewise
        """Sends `buffer`, or raises `httpcore.WriteTimeout` before the first byte when the deadline has passed."""
        exchange = _current.get()
        remaining = exchange.remaining()
        if remaining <= 0:
            raise httpcore.WriteTimeout("the time for the whole call is over")
        exchange.sent = exchange.sent or bool(buffer)
        self._inner.write(buffer, remaining)

    def close(self) -> None:
        """Closes the connection."""
        self._inner.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ARG002  # likewise
    ) -> httpcore.NetworkStream:
        """The connection after its TLS handshake, which counts as connecting: nothing of the request is sent yet."""
        return _DeadlineStream(self._inner.start_tls(ssl_context, server_hostname, _connect_timeout()))

    def get_extra_info(self, info: str) -> Any:
        """What the underlying stream says, such as whether the peer has closed it."""
        return self._inner.get_extra_info(info)


class _DeadlineBackend(httpcore.NetworkBackend):
    """Opens connections that keep to the deadline of the current exchange."""

    def __init__(self) -> None:
        self._inner = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ARG002  # likewise
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        """A connection to `host`, made within the time for connecting and before the deadline."""
        return _DeadlineStream(self._inner.connect_tcp(host, port, _connect_timeout(), local_address, socket_options))


def _connect_timeout() -> float:
    exchange = _current.get()
    remaining = min(exchange.remaining(), exchange.connect_seconds)
    if remaining <= 0:
        raise httpcore.ConnectTimeout("the time for the whole call is over")
    return remaining
