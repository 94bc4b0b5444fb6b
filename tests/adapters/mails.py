"""Notifications by mail, as the tests of the mail adapter send them."""

from __future__ import annotations

from typing import Annotated, Any

from policies.actions import Action, Authority
from policies.money import Money
from resources.adapters.base import opened
from resources.adapters.outcome import call
from resources.adapters.smtp import SmtpAdapter
from tests.adapters.mail_server import MailServer

KEY = "refunds:r1:3:customer.tell:1"
SUBJECTS = {"customer.tell": "Order {order_id}: your refund"}
TEXTS = {"customer.tell": "We paid back {amount}.\n\n{note}\n.\nThe shop"}


class Tell(Action, name="customer.tell", reversible=False, notification=True):
    """Tells a customer."""

    email: Annotated[str, Authority(record="orders")] | Annotated[list[str], Authority(record="orders")]
    order_id: str = "A-17"
    amount: Money = Money(minor=1250, currency="EUR")
    note: str = ""


def tell(to: str | list[str] = "ann@customer.example", **more: str) -> Tell:
    """A notification of one customer, or of several."""
    return Tell(email=to, **more)  # type: ignore[arg-type]  # the others are texts


def adapter(server: MailServer, **fields: Any) -> SmtpAdapter:
    """The adapter of a server."""
    usual: dict[str, Any] = {
        "host": "127.0.0.1",
        "port": server.port,
        "security": "plain",
        "sender": "refunds@shop.example",
        "to": {"customer.tell": "email"},
        "subjects": SUBJECTS,
        "texts": TEXTS,
        "timeout_seconds": 5,
    }
    return SmtpAdapter(**usual | fields)


def send(server: MailServer, action: Tell | None = None, key: str = KEY, **fields: Any) -> Any:
    """What one call comes to."""
    live = opened(adapter(server, **fields))
    try:
        return call(live, action or tell(), key)
    finally:
        live.close()
