"""Payments that are ordered by mail: an adapter that ships, at a provider that offers nothing."""

from __future__ import annotations

import socket
from typing import Any

from policies.actions import Action
from resources.adapters.smtp import SmtpAdapter
from tests.adapters.mail_server import Act, MailServer, hang_up, say_nothing


def mailing(server: MailServer, kind: type[Action]) -> SmtpAdapter:
    """The adapter that pays orders by a mail each; an order's id is the address that is written to."""
    name = kind.action_type.name
    fields: dict[str, Any] = {
        "host": "127.0.0.1",
        "port": server.port,
        "security": "plain",
        "sender": "shop@shop.example",
        "to": {name: "order_id"},
        "subjects": {name: "Order {order_id}"},
        "texts": {name: "Pay {amount}."},
        "timeout_seconds": 2,
    }
    return SmtpAdapter(**fields)


def lose(connection: socket.socket) -> None:
    """Let the client send its message, and end the connection without having taken it."""
    connection.sendall(b"354 go on\r\n")
    heard = b""
    while not heard.endswith(b"\r\n.\r\n"):
        heard += connection.recv(65536)
    hang_up(connection)


OUTAGES: dict[str, tuple[str, str | Act]] = {
    "lose_answer": (".", say_nothing),
    "fail_after": (".", hang_up),
    "nonsense": (".", "nonsense"),
    "fail_before": ("DATA", lose),
    "busy": ("RCPT", "450 later"),
}
"""What a fault is for a mail server: at which command of a session, and what happens instead of its reply."""
