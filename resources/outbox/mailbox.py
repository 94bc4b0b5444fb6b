"""Telling people by mail what needs them: one plain-text message for each notice, to fixed addresses."""

from __future__ import annotations

import os
import ssl
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import dagster as dg

from policies.errors import DefinitionError, NotExecuted, OutcomeUnknown
from policies.outcomes import Refused
from resources.adapters.smtp import SECURITY
from resources.outbox.destination import LONGEST_TIMEOUT, NotTaken
from resources.outbox.notices import desk_url, notice
from resources.secrets import check_reference

if TYPE_CHECKING:
    from resources.outbox.events import OutboxEvent


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Mailbox:
    """Who is told by mail of approvals and cases: `fs.definitions(..., outbox=fs.Mailbox(...))`.

    Each notice is sent at least once, under a Message-ID that repeats, so that a mail program shows it once. What needs
    nobody is not sent. Whether a mail arrives decides nothing.

    Attributes:
        host: the mail server.
        port: 587 for STARTTLS, 465 for TLS from the first byte.
        security: `starttls`, `tls`, or `plain` (for a server on the same machine; credentials are never sent over it).
        username: to sign in with; empty: no sign-in.
        password: of that user, as `dg.EnvVar`.
        sender: the address it comes from.
        to: the addresses it goes to.
        timeout_seconds: longest time of one whole delivery, connecting included; at most 30.
        connect_seconds: longest time to connect.
        connections: deliveries at once.
    """

    host: str
    port: int = 587
    security: str = "starttls"
    username: str = ""
    password: str | None = None
    sender: str
    to: Sequence[str]
    timeout_seconds: float = 15
    connect_seconds: float = 3
    connections: int = 2

    def __post_init__(self) -> None:
        """Checks what can be checked before the variables are known.

        Raises:
            DefinitionError: naming the field and what to write instead.
        """
        from resources.adapters.smtp_message import ADDRESS, recipients

        if self.security not in SECURITY:
            raise DefinitionError(f"mailbox, field security: write one of {', '.join(SECURITY)}")
        if bool(self.username) is not bool(self.password):
            raise DefinitionError("mailbox: give username and password, or neither")
        if self.password is not None:
            check_reference(self.password, "mailbox, field password")
        if self.username and self.security == "plain":
            raise DefinitionError("mailbox, field security: a password is sent over TLS only; write starttls or tls")
        if ADDRESS.fullmatch(self.sender) is None:
            raise DefinitionError("mailbox, field sender: write a plain mail address")
        if isinstance(self.to, str) or recipients(self.to) is None:
            raise DefinitionError('mailbox, field to: write a list of plain mail addresses: to=["leads@shop.example"]')
        if not 0 < self.timeout_seconds <= LONGEST_TIMEOUT or self.connect_seconds <= 0:
            raise DefinitionError(f"mailbox, field timeout_seconds: more than 0 and at most {LONGEST_TIMEOUT:g}")
        if self.connections < 1:
            raise DefinitionError("mailbox: connections is at least 1")

    def opened(self) -> OpenMailbox:
        """Ready to send, its variables resolved.

        Raises:
            DefinitionError: a variable is missing, or FAILSAFE_DESK_URL is no address.
        """
        password = ""
        if isinstance(self.password, dg.EnvVar):
            password = os.environ.get(self.password.env_var_name, "")
            if not password:
                name = self.password.env_var_name
                raise DefinitionError(f"mailbox: set {name} in the environment of the code location")
        return OpenMailbox(self, password, desk_url())


class OpenMailbox:
    """An opened mailbox, shared by threads: every mail has a connection of its own."""

    def __init__(self, mailbox: Mailbox, password: str, desk: str) -> None:
        self._mailbox = mailbox
        self._password = password
        self._desk = desk
        self._tls = None if mailbox.security == "plain" else ssl.create_default_context()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass  # no connection outlives its mail

    def deliver(self, event: OutboxEvent) -> NotTaken | None:
        """Sends the notice of one event, if there is one, never longer than the timeout; None: the server took it."""
        text = notice(event, self._desk)
        if text is None:
            return None
        try:
            refused = self._sent(event, text)
        except (NotExecuted, OutcomeUnknown) as error:
            return NotTaken(str(error))
        return None if refused is None else NotTaken(f"the mail server refused it: {refused.code}", refused=True)

    def _sent(self, event: OutboxEvent, text: str) -> Refused | None:
        from resources.adapters.smtp_message import mail, message_id
        from resources.adapters.smtp_session import Session

        own = self._mailbox
        message = mail(
            sender=own.sender,
            to=own.to,
            subject=text.partition(":")[0] + ": " + _SUBJECTS[event.type],
            text=text + "\n",
            message=message_id(str(event.id), own.sender),
        )
        session = Session(own.host, own.port, timeout_seconds=own.timeout_seconds, connect_seconds=own.connect_seconds)
        with closing(session):
            session.greet(own.sender.rpartition("@")[2], self._tls, implicit=own.security == "tls")
            if own.username:
                session.authenticate(own.username, self._password)
            answer = session.send(own.sender, own.to, message)
        return answer if isinstance(answer, Refused) else None


_SUBJECTS = {
    "approval.requested": "approval is needed",
    "approval.reminder": "approval is still needed",
    "approval.escalated": "approval was escalated",
    "approval.expired": "approval expired",
    "case.opened": "a case waits for an operator",
}
