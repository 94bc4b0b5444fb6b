"""Where events are published to: one address, by POST, signed; or a chat that takes Slack's messages.

| the receiver | counts as |
|---|---|
| answers 2xx in time, whatever the body | taken |
| answers 400, 409, 413, 415 or 422 | refused: it is well and does not want this very event |
| answers anything else, or nothing in time | failed: nothing is known about the event; `Retry-After` is honoured |

Redirects are not followed, proxies of the environment are not used, and a response is never decompressed.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, Self, TypeAlias

import dagster as dg

from policies.errors import DefinitionError, NotExecuted, OutcomeUnknown
from policies.retries import retry_after
from resources.adapters.http_url import check_url
from resources.outbox.destination import LONGEST_TIMEOUT, NotTaken
from resources.outbox.envelope import CONTENT_TYPE, envelope
from resources.outbox.notices import desk_url, for_slack, notice
from resources.outbox.signing import signature, signing_key
from resources.secrets import check_reference

if TYPE_CHECKING:
    from resources.adapters.http_transport import Answer, Transport
    from resources.outbox.events import OutboxEvent

REFUSALS: Final = frozenset({400, 409, 413, 415, 422})
"""Answers about what was sent; others are about the address, the credentials or the moment."""

_SOURCE = re.compile(r"[!#$%&'()*+,./:;=?@\[\]_~A-Za-z0-9-]{1,200}")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Webhook:
    """The receiver of what the outbox holds: `fs.definitions(..., outbox=fs.Webhook(...))`.

    All events of the store go there, so one location of a store has it. Each is delivered at least once and, within
    one request, in order; a consumer knows a repeated event by its `id`.

    Attributes:
        url: where events are posted to, a text or `dg.EnvVar`; its host must be in `hosts`.
        format: `cloudevents`, every event as it is; or `slack`, a short text for what needs people and nothing of the
            rest, with a link to FAILSAFE_DESK_URL. The address of a Slack webhook is its secret: give a `dg.EnvVar`.
        secret: `whsec_` and 24 to 64 random bytes in base64, as `dg.EnvVar`; the receiver checks signatures with it.
            A chat checks none, so `slack` goes without.
        hosts: the only hosts that are ever spoken to.
        source: CloudEvents `source`: who says so. An address of yours, where several senders share a receiver.
        timeout_seconds: longest time of one whole delivery, connecting included; at most 30.
        connect_seconds: longest time to connect.
        max_response_bytes: reading stops there; the answer's status counts all the same.
        connections: deliveries at once.
    """

    url: str
    format: Literal["cloudevents", "slack"] = "cloudevents"
    secret: str | None = None
    hosts: Sequence[str]
    source: str = "dagster-failsafe"
    timeout_seconds: float = 15
    connect_seconds: float = 3
    max_response_bytes: int = 65_536
    connections: int = 4

    def __post_init__(self) -> None:
        """Checks what can be checked before the variables are known.

        Raises:
            DefinitionError: naming the field and what to write instead.
        """
        if self.format not in ("cloudevents", "slack"):
            raise DefinitionError("webhook, field format: write cloudevents or slack")
        if self.format == "cloudevents" or self.secret is not None:
            check_reference(self.secret, "webhook, field secret")
        if isinstance(self.url, dg.EnvVar):
            check_reference(self.url, "webhook, field url")
        else:
            check_url(self.url, self._hosts(), "webhook, field url")
        self._hosts()
        if _SOURCE.fullmatch(self.source) is None:
            raise DefinitionError("webhook, field source: write an address or a name without spaces")
        if not 0 < self.timeout_seconds <= LONGEST_TIMEOUT or self.connect_seconds <= 0:
            raise DefinitionError(f"webhook, field timeout_seconds: more than 0 and at most {LONGEST_TIMEOUT:g}")
        if self.connections < 1 or self.max_response_bytes < 0:
            raise DefinitionError("webhook: connections is at least 1, max_response_bytes not below 0")

    def _hosts(self) -> Sequence[str]:
        if isinstance(self.hosts, str) or not self.hosts:
            raise DefinitionError('webhook, field hosts: write a list: hosts=["hooks.example"]')
        return self.hosts

    def opened(self) -> Receiver:
        """Ready to deliver, its variables resolved; leaving its block closes it.

        Raises:
            DefinitionError: a variable is missing, or what it holds does not fit.
        """
        from resources.adapters.http_transport import Transport  # only a run that publishes pays for it

        url = _value(self.url) if isinstance(self.url, dg.EnvVar) else self.url
        check_url(url, self._hosts(), "webhook, field url")
        transport = Transport(
            timeout_seconds=self.timeout_seconds,
            connect_seconds=self.connect_seconds,
            max_response_bytes=self.max_response_bytes,
            connections=self.connections,
        )
        key = None if self.secret is None else signing_key(_value(self.secret), "webhook, field secret")
        return Receiver(transport, url, key, self._message())

    def _message(self) -> Message:
        """What is posted of an event; bound here, so that the address of the desk is checked once."""
        if self.format == "cloudevents":
            return lambda event: (CONTENT_TYPE, envelope(event, self.source))
        desk = desk_url()

        def message(event: OutboxEvent) -> tuple[str, bytes] | None:
            text = notice(event, desk)
            return None if text is None else ("application/json; charset=utf-8", for_slack(text))

        return message


Message: TypeAlias = "Callable[[OutboxEvent], tuple[str, bytes] | None]"
"""Content type and body to post; None: the receiver is not told of this event."""


class Receiver:
    """An opened webhook, shared by threads."""

    def __init__(self, transport: Transport, url: str, key: bytes | None, message: Message) -> None:
        self._transport = transport
        self._url = url
        self._key = key
        self._message = message

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._transport.close()

    def deliver(self, event: OutboxEvent) -> NotTaken | None:
        """Sends one event, never longer than the timeout; None: the receiver took it, or is not told of it."""
        message = self._message(event)
        if message is None:
            return None
        content_type, body = message
        headers = {"Content-Type": content_type, "User-Agent": "dagster-failsafe"}
        if self._key is not None:
            timestamp = str(int(time.time()))
            headers |= {
                "webhook-id": str(event.id),
                "webhook-timestamp": timestamp,
                "webhook-signature": signature(self._key, str(event.id), timestamp, body),
            }
        try:
            answer = self._transport.exchange("POST", self._url, headers, body)
        except (NotExecuted, OutcomeUnknown) as error:
            return NotTaken(str(error))
        return None if 200 <= answer.status < 300 else _not_taken(answer)


def _not_taken(answer: Answer) -> NotTaken:
    header = answer.headers.get("retry-after")
    wait = retry_after(header, answer.headers.get("date")) if header is not None else None
    return NotTaken(
        f"the receiver answered {answer.status}",
        refused=answer.status in REFUSALS,
        retry_after=None if wait is None else wait.total_seconds(),
    )


def _value(variable: str) -> str:
    name = variable.env_var_name if isinstance(variable, dg.EnvVar) else variable
    value = os.environ.get(name)
    if not value:
        raise DefinitionError(f"webhook: set {name} in the environment of the code location")
    return value
