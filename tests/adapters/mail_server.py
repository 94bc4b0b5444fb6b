"""A small mail server on loopback: takes mail, offers TLS and sign-in, and misbehaves as told."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from base64 import b64decode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

USER, PASSWORD = "refunds", "pw-11af-mail"


@dataclass(frozen=True)
class Mail:
    """One message that the server took."""

    sender: str
    recipients: tuple[str, ...]
    content: bytes
    encrypted: bool
    user: str


Act = Callable[[socket.socket], None]
"""What happens instead of a reply."""


@dataclass
class MailServer:
    """Its mailbox, what it heard, and its knobs."""

    mails: list[Mail] = field(default_factory=list)
    heard: list[str] = field(default_factory=list)
    replies: dict[str, list[str | Act]] = field(default_factory=dict)
    """Given instead of the usual replies to a command, one after the other; `.` is the end of a message."""
    starttls: ssl.SSLContext | None = None
    tls: ssl.SSLContext | None = None
    mechanisms: str = "PLAIN LOGIN"
    port: int = 0

    @property
    def bodies(self) -> list[bytes]:
        """What was taken, as it was sent."""
        return [mail.content for mail in self.mails]


class _Talk:
    """One session."""

    def __init__(self, server: MailServer, connection: socket.socket) -> None:
        self.server = server
        self.connection = connection
        self.encrypted = False
        self.user = ""
        self.sender = ""
        self.recipients: list[str] = []
        self.received = b""

    def run(self) -> None:
        if self.server.tls is not None:
            self._encrypt(self.server.tls)
        self._say("greeting", "220 mail.example at your service")
        while (line := self._line()) is not None:
            text = line.decode("latin-1")
            self.server.heard.append(text)
            word = text.partition(" ")[0].upper()
            if word == "QUIT":
                self._say(word, "221 bye")
                return
            getattr(self, f"_{word.lower()}", self._unknown)(text)

    def _ehlo(self, _: str) -> None:
        offers = [f"AUTH {self.server.mechanisms}"] if self.server.mechanisms else []
        if self.server.starttls is not None and not self.encrypted:
            offers.append("STARTTLS")
        lines = ["mail.example", *offers, "8BITMIME"]
        self._say("EHLO", "\r\n".join(f"250{'-' if line is not lines[-1] else ' '}{line}" for line in lines))

    def _starttls(self, _: str) -> None:
        self._say("STARTTLS", "220 go ahead")
        assert self.server.starttls is not None
        self._encrypt(self.server.starttls)

    def _auth(self, text: str) -> None:
        words = text.split()
        if words[1] == "PLAIN":
            _, user, password = b64decode(words[2]).decode().split("\0")
        else:
            self._send("334 VXNlcm5hbWU6")
            user = b64decode(self._line() or b"").decode()
            self._send("334 UGFzc3dvcmQ6")
            password = b64decode(self._line() or b"").decode()
        right = (user, password) == (USER, PASSWORD)
        self.user = user if right else ""
        self._say("AUTH", "235 welcome" if right else f"535 no, {user}, not with {password}")

    def _mail(self, text: str) -> None:
        self.sender, self.recipients = text[text.index("<") + 1 : text.index(">")], []
        self._say("MAIL", "250 ok")

    def _rcpt(self, text: str) -> None:
        self.recipients.append(text[text.index("<") + 1 : text.index(">")])
        self._say("RCPT", "250 ok")

    def _data(self, _: str) -> None:
        if not self._say("DATA", "354 go on"):
            return
        lines: list[bytes] = []
        while (line := self._line()) != b".":
            if line is None:
                return
            lines.append(line.removeprefix(b"."))
        content = b"".join(line + b"\r\n" for line in lines)
        self.server.mails.append(Mail(self.sender, tuple(self.recipients), content, self.encrypted, self.user))
        self._say(".", "250 queued as 4711")

    def _unknown(self, _: str) -> None:
        self._send("502 unknown command")

    def _say(self, command: str, usual: str) -> bool:
        """Replies; whether the usual reply was given."""
        waiting = self.server.replies.get(command)
        if not waiting:
            self._send(usual)
            return True
        special = waiting.pop(0)
        if isinstance(special, str):
            self._send(special)
        else:
            special(self.connection)
        return False

    def _send(self, reply: str) -> None:
        self.connection.sendall(f"{reply}\r\n".encode())

    def _encrypt(self, context: ssl.SSLContext) -> None:
        self.connection = context.wrap_socket(self.connection, server_side=True)
        self.encrypted, self.received = True, b""

    def _line(self) -> bytes | None:
        while b"\r\n" not in self.received:
            more = self.connection.recv(65536)
            if not more:
                return None
            self.received += more
        line, _, self.received = self.received.partition(b"\r\n")
        return line


@contextmanager
def serving_mail(server: MailServer) -> Iterator[MailServer]:
    """Serves until the block ends, each connection in a thread of its own."""
    listener = socket.create_server(("127.0.0.1", 0))
    server.port = listener.getsockname()[1]

    def talk(connection: socket.socket) -> None:
        session = _Talk(server, connection)
        try:
            session.run()
        except (OSError, AssertionError):
            pass  # the client hung up, or the test let the server do so
        finally:
            session.connection.close()

    def run() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=talk, args=(connection,), daemon=True).start()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


def hang_up(connection: socket.socket) -> None:
    """Ends the connection without a word."""
    connection.shutdown(socket.SHUT_RDWR)


def drip(connection: socket.socket) -> None:
    """Sends a reply that never ends, one byte at a time: no single read ever times out."""
    while True:
        connection.sendall(b"2")
        time.sleep(0.02)


def say_nothing(_: socket.socket) -> None:
    """Lets the client wait."""
    time.sleep(3)


def certificate(folder: Path, host: str = "127.0.0.1") -> tuple[Path, ssl.SSLContext]:
    """A new certificate for an address, as the file to trust it by, and the context of a server that has it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "mail.example")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address(host))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    trusted, private = folder / "mail.pem", folder / "mail.key"
    trusted.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    private.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(trusted, private)
    return trusted, context
