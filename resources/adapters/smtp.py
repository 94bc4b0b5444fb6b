"""An adapter for mail: a provider that neither honours keys nor can be asked what it did.

| what happens | outcome |
|---|---|
| the server takes the message (2xx after its end) | `Done`, with the Message-ID as reference |
| 5xx to sender, recipient, DATA or message | `Refused`, `smtp_<code>` |
| 4xx to any of them; 530, 534, 535 and 538, which are about credentials | not executed |
| no connection, no TLS, no sign-in, a broken session before the message was sent | not executed |
| timeout or a broken session after that | unknown: it may be on its way |
| one recipient of several refused | none of them gets it |
| a recipient that is no plain address | `Refused`, `bad_recipient`; nothing is connected to |

The Message-ID follows from the idempotency key, so a receiver that compares them drops a second one. An unknown outcome
goes to a person, unless the action says `on_unknown="assume_done"`.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterable
from contextlib import closing
from datetime import timedelta
from typing import Any

import dagster as dg
from pydantic import PrivateAttr

from policies.actions import Action
from policies.errors import DefinitionError
from policies.outcomes import Done, Refused, Semantics
from resources.adapters.base import Adapter, settled
from resources.secrets import Secret

SECURITY = ("starttls", "tls", "plain")


class SmtpAdapter(Adapter):
    """Sends one plain-text mail for each action. Whom it goes to stands in the action, and nowhere else.

    Fields:
        host: the mail server.
        port: 587 for STARTTLS, 465 for TLS from the first byte.
        security: `starttls`, `tls`, or `plain` (for a server on the same machine; credentials are never sent over it).
        username: to sign in with; empty: no sign-in.
        password: of that user, as `dg.EnvVar`.
        sender: the address it comes from.
        to: of each action type, the parameter that holds the address, or a list of addresses.
        subjects: of each action type, the subject; `{parameter}` stands for what the action says.
        texts: of each action type, the text, likewise.
        timeout_seconds: longest time of one whole call, connecting included.
        connect_seconds: longest time to connect.
        concurrency: mails at once from one worker, each on a connection of its own.
        max_in_flight, per_second: what the server takes from all workers together; None: as much as comes.
    """

    host: str
    port: int = 587
    security: str = "starttls"
    username: str = ""
    password: Secret | None = None
    sender: str
    to: dict[str, str]
    subjects: dict[str, str]
    texts: dict[str, str]
    timeout_seconds: float = 10
    connect_seconds: float = 3
    concurrency: int = 4
    max_in_flight: int | None = None
    per_second: float | None = None
    _tls: Any = PrivateAttr(default=None)

    @property
    def semantics(self) -> Semantics:  # type: ignore[override]  # timeout and concurrency are configuration
        """Neither key nor look-up: at most once, and what is uncertain stays so."""
        return Semantics(
            timeout=timedelta(seconds=self.timeout_seconds),
            concurrency=self.concurrency,
            max_in_flight=self.max_in_flight,
            per_second=self.per_second,
        )

    def __init__(self, **data: Any) -> None:
        super().__init__(**data)
        where = f"adapter {type(self).__name__}"
        if self.security not in SECURITY:
            raise DefinitionError(f"{where}, field security: write one of {', '.join(SECURITY)}")
        if bool(self.username) is not bool(self.password):
            raise DefinitionError(f"{where}: give username and password, or neither")
        if self.username and self.security == "plain":
            raise DefinitionError(f"{where}, field security: a password is sent over TLS only; write starttls or tls")
        if not self.to.keys() == self.subjects.keys() == self.texts.keys():
            raise DefinitionError(f"{where}: to, subjects and texts must name the same action types")
        if not isinstance(self.sender, dg.EnvVar):
            self._check_sender()

    def open(self) -> None:
        """Prepares what TLS needs; no connection is opened before the first call."""
        self._check_sender()
        if self.security != "plain":
            self._tls = ssl.create_default_context()

    def provider(self) -> str:
        """The server: all adapters that speak to it share its limits and its breaker."""
        host = settled(self.host)
        return f"{host}:{self.port}" if isinstance(host, str) else type(self).__name__

    def target(self) -> str:
        """Server, account and sender, and what is written to whom."""
        account = [settled(self.host), self.port, settled(self.username), settled(self.sender)]
        return json.dumps([account, self.to, self.subjects, self.texts], sort_keys=True)

    def check_executes(self, model: type[Action], known: Iterable[type[Action]] = ()) -> None:  # noqa: ARG002  # no names
        """Accepts an action type that has recipient, subject and text, made of its own parameters only.

        Raises:
            DefinitionError: one is missing, or names a parameter that the action lacks.
        """
        from resources.adapters.smtp_message import placeholders

        where, name, parameters = f"adapter {type(self).__name__}", model.action_type.name, model.model_fields
        if name not in self.to:
            raise DefinitionError(f'{where}: add "{name}" to the fields to, subjects and texts')
        try:
            used = placeholders(self.subjects[name]) | placeholders(self.texts[name]) | {self.to[name]}
        except ValueError as error:
            raise DefinitionError(f'{where}, subject or text of "{name}": {error}') from None
        unknown = sorted(used - parameters.keys())
        if unknown:
            offered = ", ".join(parameters)
            raise DefinitionError(f'{where}, "{name}": no parameter {", ".join(unknown)}; there are {offered}')

    def execute(self, action: Action, key: str) -> Done | Refused:
        """Sends the mail; the module's table says what each answer means."""
        from resources.adapters.smtp_message import filled, mail, message_id, recipients
        from resources.adapters.smtp_session import Session

        name = action.action_type.name
        to = recipients(getattr(action, self.to[name]))
        if to is None:
            return Refused("bad_recipient", f"{self.to[name]} holds no plain mail addresses")
        reference = message_id(key, self.sender)
        message = mail(
            sender=self.sender,
            to=to,
            subject=filled(self.subjects[name], action),
            text=filled(self.texts[name], action),
            message=reference,
        )
        session = Session(
            self.host, self.port, timeout_seconds=self.timeout_seconds, connect_seconds=self.connect_seconds
        )
        with closing(session):
            session.greet(self.sender.rpartition("@")[2], self._tls, implicit=self.security == "tls")
            if self.password:
                session.authenticate(self.username, self.password)
            answer = session.send(self.sender, to, message)
        return answer if isinstance(answer, Refused) else Done(reference, {"answer": answer.text})

    def _check_sender(self) -> None:
        from resources.adapters.smtp_message import ADDRESS

        if ADDRESS.fullmatch(self.sender) is None:
            raise DefinitionError(f"adapter {type(self).__name__}, field sender: write a plain mail address")
