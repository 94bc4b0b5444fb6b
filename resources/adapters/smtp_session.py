"""One SMTP session (RFC 5321) with one deadline for all of it, and certainty about whether any of the message was sent.

A timeout per socket operation, which is what the standard library offers, lets a server that drips bytes outlast any
lease; and it does not say how far a session that broke had come.
"""

from __future__ import annotations

import re
import socket
import ssl
import time
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NoReturn

from policies.errors import NotExecuted, OutcomeUnknown
from policies.outcomes import Refused

MAX_REPLY: Final = 16_384
"""Bytes of one reply; a server that says more is not talked to."""

ABOUT_CREDENTIALS: Final = frozenset({530, 534, 535, 538})
"""Permanent codes that say nothing about the message: credentials can be corrected."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A server's reply: its code, and its lines without it."""

    code: int
    lines: tuple[str, ...]

    @property
    def text(self) -> str:
        """What it says, in one line."""
        return " ".join((str(self.code), *self.lines))

    @property
    def positive(self) -> bool:
        """Whether the command was carried out."""
        return 200 <= self.code < 300


class Session:
    """One connection, for one message. What it raises is `NotExecuted`, or `OutcomeUnknown` once the message is out."""

    def __init__(self, host: str, port: int, *, timeout_seconds: float, connect_seconds: float) -> None:
        self._host = host
        self._deadline = time.monotonic() + timeout_seconds
        self._received = bytearray()
        self._extensions: dict[str, list[str]] = {}
        self._sent = False
        try:
            self._socket = self._connected(port, connect_seconds)
        except OSError as error:
            raise NotExecuted(f"no connection to the mail server ({type(error).__name__})") from None

    def close(self) -> None:
        """Ends the session without waiting for an answer: it could change nothing about a message that is taken."""
        try:
            self._socket.settimeout(max(0.01, min(1.0, self._deadline - time.monotonic())))
            self._socket.sendall(b"QUIT\r\n")
        except OSError:
            pass  # it is over either way
        finally:
            self._socket.close()

    def greet(self, name: str, tls: ssl.SSLContext | None, *, implicit: bool) -> None:
        """Says hello as `name`, over TLS where a context is given: from the first byte, or after STARTTLS."""
        if tls is not None and implicit:
            self._start_tls(tls)
        self._expect(220, self._reply())
        self._hello(name)
        if tls is not None and not implicit:
            if "STARTTLS" not in self._extensions:
                raise NotExecuted("the mail server offers no STARTTLS; nothing is sent without it")
            self._expect(220, self._command("STARTTLS"))
            self._received.clear()  # what came before the handshake was not protected by it
            self._start_tls(tls)
            self._hello(name)

    def authenticate(self, username: str, password: str) -> None:
        """Signs in by AUTH PLAIN, or AUTH LOGIN where the server offers no other."""
        offered = self._extensions.get("AUTH", [])
        if "PLAIN" in offered:
            reply = self._command(f"AUTH PLAIN {_base64(f'{chr(0)}{username}{chr(0)}{password}')}")
        elif "LOGIN" in offered:
            self._expect(334, self._command("AUTH LOGIN"))
            self._expect(334, self._command(_base64(username)))
            reply = self._command(_base64(password))
        else:
            raise NotExecuted("the mail server offers neither AUTH PLAIN nor AUTH LOGIN")
        if reply.code != 235:
            # Its text may repeat what was sent.
            raise NotExecuted(f"the mail server refused the credentials ({reply.code})")

    def send(self, sender: str, recipients: Sequence[str], message: bytes) -> Reply | Refused:
        """Hands the message over for all recipients or for none; the reply says that the server took it."""
        begun = self._command(f"MAIL FROM:<{sender}>")
        if not begun.positive:
            return _refused(begun)
        replies = [self._command(f"RCPT TO:<{recipient}>") for recipient in recipients]
        rejected = [reply for reply in replies if not reply.positive]
        if rejected:
            # For good if any is for good: the message would never go to all of them.
            return _refused(max(rejected, key=lambda reply: reply.code))
        ready = self._command("DATA")
        if ready.code != 354:
            return _refused(ready)
        self._sent = True
        self._write(_transparent(message))
        taken = self._reply()
        if taken.positive:
            return taken
        if not 400 <= taken.code < 600:
            raise OutcomeUnknown(f"the mail server answered {taken.code} to the message")
        return _refused(taken)

    def _connected(self, port: int, connect_seconds: float) -> socket.socket:
        failed: OSError = OSError("the host has no address")
        for family, kind, protocol, _, address in socket.getaddrinfo(self._host, port, type=socket.SOCK_STREAM):
            one = socket.socket(family, kind, protocol)
            try:
                one.settimeout(min(connect_seconds, self._remaining()))
                one.connect(address)
                return one
            except OSError as error:
                one.close()
                failed = error
        raise failed

    def _start_tls(self, tls: ssl.SSLContext) -> None:
        try:
            self._socket.settimeout(self._remaining())
            self._socket = tls.wrap_socket(self._socket, server_hostname=self._host)
        except (OSError, ValueError) as error:
            raise NotExecuted(f"no TLS with the mail server ({type(error).__name__})") from None

    def _hello(self, name: str) -> None:
        reply = self._expect(250, self._command(f"EHLO {name}"))
        words = [line.upper().split() for line in reply.lines[1:]]
        self._extensions = {first: rest for first, *rest in filter(None, words)}

    def _command(self, line: str) -> Reply:
        self._write(f"{line}\r\n".encode("ascii"))
        return self._reply()

    def _expect(self, code: int, reply: Reply) -> Reply:
        if reply.code != code:
            raise NotExecuted(f"the mail server answered {reply.code} where {code} was expected")
        return reply

    def _write(self, data: bytes) -> None:
        try:
            self._socket.settimeout(self._remaining())
            self._socket.sendall(data)
        except OSError as error:
            self._broken(error)

    def _reply(self) -> Reply:
        lines, size = [], 0
        while True:
            line = self._line()
            size += len(line)
            found = re.fullmatch(rb"([2-5][0-9]{2})(?:([ -])(.*))?", line, re.DOTALL)
            if found is None or size > MAX_REPLY:
                self._broken(ValueError())
            lines.append((found[3] or b"").decode("utf-8", "replace"))
            if found[2] != b"-":
                return Reply(int(found[1]), tuple(lines))

    def _line(self) -> bytes:
        while (end := self._received.find(b"\n")) < 0:
            try:
                self._socket.settimeout(self._remaining())
                more = self._socket.recv(4096)
            except OSError as error:
                self._broken(error)
            if not more or len(self._received) > MAX_REPLY:
                self._broken(EOFError())
            self._received += more
        line = bytes(self._received[:end]).rstrip(b"\r")
        del self._received[: end + 1]
        return line

    def _remaining(self) -> float:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left

    def _broken(self, error: Exception) -> NoReturn:
        # The text of an error may repeat what was sent, so only its kind is told.
        if self._sent:
            raise OutcomeUnknown(f"{type(error).__name__} after the message was sent") from None
        raise NotExecuted(f"{type(error).__name__} before the message was sent") from None


def _refused(reply: Reply) -> Refused:
    """What a negative reply to a message means: for good, or for now."""
    if not 500 <= reply.code < 600 or reply.code in ABOUT_CREDENTIALS:
        raise NotExecuted(f"the mail server did not take it: {reply.text}")
    return Refused(f"smtp_{reply.code}", reply.text)


def _transparent(message: bytes) -> bytes:
    """The message as DATA carries it: every line ends in CRLF, so that none but the last one can end it."""
    lines = re.split(rb"\r\n|\r|\n", message.rstrip(b"\r\n"))
    return b"".join(b"." * line.startswith(b".") + line + b"\r\n" for line in lines) + b".\r\n"


def _base64(text: str) -> str:
    return b64encode(text.encode()).decode()
