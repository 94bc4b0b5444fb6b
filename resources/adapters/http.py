"""A generic adapter for HTTP providers that take an `Idempotency-Key` header.

What each answer means (`execute`; a look-up differs where stated):

| answer | outcome |
|---|---|
| 200, 201, 204, other 2xx | `Done`; with `refused_field` present in the body, `Refused` with its value as code |
| 202 | unknown: accepted is not done |
| 2xx whose body is too large, no JSON object, or lacks `reference_field` | unknown |
| 3xx | unknown; never followed |
| 401, 403, 407 | not executed: nothing changes until the credentials do |
| 408, 425, 429 | not executed; `Retry-After` is honoured |
| 503 with `Retry-After` | not executed; `Retry-After` is honoured |
| 409 | unknown: the first call under this key is still in progress at the provider, so it may yet become done |
| 422 that speaks of idempotency | `Refused` with code `key_reused_with_other_body`: a bug of ours, never sent again |
| other 4xx with a JSON object or nothing as body | `Refused` with the body's `code`, or else `http_<status>` |
| other 4xx with any other body | not executed: something in front of the provider answered |
| 404 in a look-up | None, the provider does not know the key; with another body than a JSON object unknown |
| other 4xx in a look-up | unknown |
| 5xx | unknown |
| no connection, TLS failure, time over before the first byte of the request | not executed |
| timeout, reset, broken response after that | unknown |

Redirects are not followed, proxies of the environment are not used, and a response is never decompressed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

import dagster as dg
from pydantic import PrivateAttr

from policies.actions import Action
from policies.errors import DefinitionError, NotExecuted, OutcomeUnknown
from policies.outcomes import Done, Refused, Semantics
from policies.retries import retry_after
from resources.adapters.base import Adapter, settled
from resources.adapters.http_url import check_url
from resources.secrets import Secret

if TYPE_CHECKING:
    from resources.adapters.http_transport import Answer

KEY = re.compile(r"[!-~]{1,255}")
"""Keys that a header can carry: visible ASCII, no spaces, no control characters."""

NOT_EXECUTED = frozenset({401, 403, 407, 408, 425, 429})


class HttpAdapter(Adapter):
    """Sends each action's parameters as JSON by POST, with `Authorization: Bearer <token>` and `Idempotency-Key`.

    Fields:
        url: base address, such as `https://pay.example/v1`; its host must be in `hosts`.
        token: bearer token, as `dg.EnvVar`.
        hosts: the only hosts that are ever spoken to.
        paths: path of each action type, appended to `url`.
        look_up_path: path template to find an effect by key, such as `/payments/{key}`; empty: no look-up.
        keep: top-level response fields kept as the result.
        reference_field: response field with the provider's own id; empty: the key itself serves as reference.
        refused_field: response field that, where present and not null, holds the code of a refusal sent with 200.
        key_kept_hours: how long the provider remembers a key; None: it does not honour keys.
        visible_after_seconds: how long after an effect a look-up may still miss it.
        timeout_seconds: longest time of one whole call, connecting included.
        connect_seconds: longest time to connect.
        max_response_bytes: larger responses are cut off and count as unreadable.
        concurrency: calls at once from one worker.
        max_in_flight, per_second: what the host takes from all workers together; None: as much as comes.
    """

    url: str
    token: Secret
    hosts: list[str]
    paths: dict[str, str]
    look_up_path: str = ""
    keep: list[str] = []  # noqa: RUF012  # pydantic copies defaults
    reference_field: str = "id"
    refused_field: str = ""
    key_kept_hours: float | None = None
    visible_after_seconds: float = 0
    timeout_seconds: float = 10
    connect_seconds: float = 3
    max_response_bytes: int = 65_536
    concurrency: int = 4
    max_in_flight: int | None = None
    per_second: float | None = None
    _transport: Any = PrivateAttr(default=None)

    @property
    def semantics(self) -> Semantics:  # type: ignore[override]  # a generic adapter's promise is its configuration
        """What the configured provider promises."""
        return Semantics(
            honours_key=None if self.key_kept_hours is None else timedelta(hours=self.key_kept_hours),
            lookup=bool(self.look_up_path),
            visible_after=timedelta(seconds=self.visible_after_seconds),
            timeout=timedelta(seconds=self.timeout_seconds),
            concurrency=self.concurrency,
            max_in_flight=self.max_in_flight,
            per_second=self.per_second,
        )

    def __init__(self, **data: Any) -> None:
        super().__init__(**data)
        if not isinstance(self.url, dg.EnvVar):
            self._check_url()
        if self.look_up_path and "{key}" not in self.look_up_path:
            raise DefinitionError("adapter HttpAdapter, field look_up_path: it must contain {key}")
        for path in (*self.paths.values(), self.look_up_path):
            if path and not path.startswith("/"):
                raise DefinitionError(f"adapter HttpAdapter: the path {path!r} must start with /")

    def open(self) -> None:
        """Prepares the connections; none is opened before the first call."""
        from resources.adapters.http_transport import Transport  # only a run that calls a provider pays for it

        self._check_url()
        self._transport = Transport(
            timeout_seconds=self.timeout_seconds,
            connect_seconds=self.connect_seconds,
            max_response_bytes=self.max_response_bytes,
            connections=self.concurrency,
        )

    def close(self) -> None:
        """Closes the connections."""
        self._transport.close()

    def provider(self) -> str:
        """The host: all adapters that speak to it share its limits and its breaker."""
        url = settled(self.url)
        return urlsplit(url).netloc if isinstance(url, str) else type(self).__name__

    def target(self) -> str:
        """Base address and paths."""
        return json.dumps({"url": settled(self.url), "paths": self.paths}, sort_keys=True)

    def check_executes(self, model: type[Action], known: Iterable[type[Action]] = ()) -> None:  # noqa: ARG002  # no names
        """Accepts the action types that have a path.

        Raises:
            DefinitionError: `paths` lacks the action type.
        """
        name = model.action_type.name
        if name not in self.paths:
            raise DefinitionError(f'adapter {type(self).__name__}, field paths: add the path of "{name}"')

    def execute(self, action: Action, key: str) -> Done | Refused:
        """Posts the action's parameters under `key`; the module's table says what each answer means."""
        if KEY.fullmatch(key) is None:
            raise NotExecuted("the idempotency key holds characters that a header cannot carry; it was not sent")
        body = json.dumps(action.model_dump(mode="json")).encode()
        headers = {"Content-Type": "application/json", "Idempotency-Key": key}
        answer = self._exchange("POST", self.paths[action.action_type.name], headers, body)
        if 400 <= answer.status < 500 and answer.status != 409:
            if answer.content is None:
                raise _not_executed(answer)
            return _refused(answer.status, answer.content)
        return self._done(answer, key)

    def look_up(self, key: str) -> Done | Refused | None:
        """Asks for `key`; every answer but 404 and a readable 2xx leaves the effect unknown."""
        answer = self._exchange("GET", self.look_up_path.replace("{key}", quote(key, safe="")), {}, None)
        if answer.status == 404 and answer.content is not None:
            return None
        return self._done(answer, key)

    def _exchange(self, method: str, path: str, headers: dict[str, str], body: bytes | None) -> Answer:
        always = {"Authorization": f"Bearer {self.token}", "Accept": "application/json"}
        answer: Answer = self._transport.exchange(method, self.url.rstrip("/") + path, always | headers, body)
        if answer.status in NOT_EXECUTED or (answer.status == 503 and "retry-after" in answer.headers):
            raise _not_executed(answer)
        return answer

    def _done(self, answer: Answer, key: str) -> Done | Refused:
        if not 200 <= answer.status < 300 or answer.status == 202:
            raise OutcomeUnknown(f"the provider answered {answer.status}")
        content = answer.content
        if content is None:
            raise OutcomeUnknown("the provider's answer is larger than max_response_bytes, or no JSON object")
        if self.refused_field and content.get(self.refused_field) is not None:
            return Refused(str(content[self.refused_field]), _words(content))
        reference = content.get(self.reference_field) if self.reference_field else key
        if not isinstance(reference, (str, int)) or reference == "":
            raise OutcomeUnknown(f"the provider's answer has no {self.reference_field!r}")
        return Done(str(reference), {name: content[name] for name in self.keep if name in content})

    def _check_url(self) -> None:
        check_url(self.url, self.hosts, f"adapter {type(self).__name__}, field url")


def _not_executed(answer: Answer) -> NotExecuted:
    header = answer.headers.get("retry-after")
    wait = retry_after(header, answer.headers.get("date")) if header is not None else None
    seconds = None if wait is None else wait.total_seconds()
    return NotExecuted(f"the provider answered {answer.status} and did nothing", retry_after=seconds)


def _refused(status: int, body: dict[str, Any]) -> Refused:
    if status == 422 and "idempot" in json.dumps(body).lower():
        return Refused("key_reused_with_other_body", _words(body))
    code = body.get("code")
    return Refused(code if isinstance(code, str) and code else f"http_{status}", _words(body))


def _words(body: dict[str, Any]) -> str:
    """The provider's own explanation, where it gives one."""
    return next((body[name] for name in ("detail", "message", "reason") if isinstance(body.get(name), str)), "")
