"""The HTTP adapter against a real provider on loopback, and against peers that do not behave."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import dagster as dg
import pytest
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response

from policies.errors import DefinitionError, NotExecuted
from policies.outcomes import Done, Refused
from resources.adapters.base import opened
from resources.adapters.http import HttpAdapter
from resources.adapters.outcome import Unknown, call, look_up
from tests.adapters.actions import Pay, pay
from tests.adapters.provider import TOKEN, Provider, raw_server, serving


@pytest.fixture
def provider(served: Provider, monkeypatch: pytest.MonkeyPatch) -> Provider:
    """A provider that is up, and its token in the environment."""
    monkeypatch.setenv("PAY_TOKEN", TOKEN)
    served.reset()
    return served


@pytest.fixture(scope="module")
def served() -> Iterator[Provider]:
    """One server for all tests of this file."""
    with serving(Provider()) as running:
        yield running


def adapter(url: str, **fields: Any) -> HttpAdapter:
    """The adapter of the provider at `url`."""
    usual: dict[str, Any] = {
        "url": url,
        "token": dg.EnvVar("PAY_TOKEN"),
        "hosts": ["127.0.0.1"],
        "paths": {"pay.send": "/pay"},
        "look_up_path": "/effects/{key}",
        "keep": ["status"],
        "key_kept_hours": 24,
        "timeout_seconds": 5,
    }
    return HttpAdapter(**usual | fields)


@pytest.fixture
def live(provider: Provider) -> Iterator[HttpAdapter]:
    """The adapter of the provider, opened."""
    one = opened(adapter(provider.url))
    yield one
    one.close()


def test_an_effect_is_sent_once_with_key_and_token_and_replayed(live: HttpAdapter, provider: Provider) -> None:
    """The key travels in the header, kept fields come back, and a repeat makes no second effect."""
    first = call(live, pay(), "expenses:r1:1:pay:1")
    assert first == Done("pay-expenses:r1:1:pay:1", {"status": "sent"})
    assert call(live, pay(), "expenses:r1:1:pay:1") == first
    assert provider.count("expenses:r1:1:pay:1") == 1
    assert provider.seen[0]["idempotency-key"] == "expenses:r1:1:pay:1"
    assert provider.seen[0]["authorization"] == f"Bearer {TOKEN}"
    assert provider.effects[0][1] == '{"payee": "Ann", "amount": {"minor": 4820, "currency": "EUR"}, "note": ""}'


def test_a_look_up_finds_what_was_done_by_its_percent_encoded_key(live: HttpAdapter) -> None:
    """A key with characters that mean something in an address is found as well."""
    assert look_up(live, "a/b?c#d:1") is None
    call(live, pay(), "a/b?c#d:1")
    assert look_up(live, "a/b?c#d:1") == Done("pay-a/b?c#d:1", {"status": "sent"})


def test_the_provider_refuses_a_reused_key_and_a_bad_amount(live: HttpAdapter, provider: Provider) -> None:
    """A definite no is a refusal with the provider's own code; ours for a reused key."""
    call(live, pay(1), "k")
    reused = call(live, pay(2), "k")
    assert reused == Refused("key_reused_with_other_body", "Idempotency-Key was used with another body")
    assert call(live, pay(-5), "k2") == Refused("declined", "not a positive amount")
    assert provider.count("k") == 1


ANSWERS: list[tuple[Response, Any]] = [
    (JSONResponse({"id": 7}, 201), Done("7")),
    (JSONResponse({"id": "x"}, 202), Unknown),
    (JSONResponse({"status": "sent"}), Unknown),
    (JSONResponse({"id": None}), Unknown),
    (JSONResponse({"id": ""}), Unknown),
    (JSONResponse([1]), Unknown),
    (PlainTextResponse("<html>all is well</html>"), Unknown),
    (Response(status_code=204), Unknown),
    (RedirectResponse("/v1/pay", 307), Unknown),
    (RedirectResponse("/v1/pay", 303), Unknown),
    (JSONResponse({"detail": "bad"}, 400), Refused("http_400", "bad")),
    (JSONResponse({"code": "closed", "message": "account closed"}, 402), Refused("closed", "account closed")),
    (JSONResponse({"detail": [{"loc": "amount"}]}, 422), Refused("http_422")),
    (JSONResponse({"type": "urn:idempotency-mismatch"}, 422), Refused("key_reused_with_other_body")),
    (JSONResponse({"code": 704}, 409), Unknown),
    (JSONResponse({}, 401), NotExecuted),
    (JSONResponse({}, 403), NotExecuted),
    (JSONResponse({}, 408), NotExecuted),
    (JSONResponse({}, 429), NotExecuted),
    (PlainTextResponse("default backend - 404", 404), NotExecuted),
    (JSONResponse({"detail": "no such payee"}, 404), Refused("http_404", "no such payee")),
    (JSONResponse({}, 500), Unknown),
    (JSONResponse({}, 502), Unknown),
    (JSONResponse({}, 503), Unknown),
    (JSONResponse({}, 503, {"Retry-After": "3"}), NotExecuted),
]


@pytest.mark.parametrize(("answer", "meaning"), ANSWERS)
def test_each_answer_means_what_the_table_says(
    live: HttpAdapter, provider: Provider, answer: Response, meaning: Any
) -> None:
    """Every row of the module's table, and never a second request."""
    provider.answers.append(answer)
    outcome = call(live, pay(), "k")
    assert outcome == meaning if isinstance(meaning, (Done, Refused)) else isinstance(outcome, meaning)
    assert len(provider.seen) == 1


@pytest.mark.parametrize("status", [400, 401, 403, 409, 410, 422, 429, 500, 503])
def test_a_failing_look_up_never_says_absent_or_refused(live: HttpAdapter, provider: Provider, status: int) -> None:
    """Only the provider's own 404 says that there is nothing."""
    provider.answers.append(JSONResponse({"code": "x"}, status))
    assert isinstance(look_up(live, "k"), (Unknown, NotExecuted))
    provider.answers.append(PlainTextResponse("default backend - 404", 404))
    assert isinstance(look_up(live, "k"), Unknown)


def test_a_refusal_sent_with_200_is_told_from_done(provider: Provider) -> None:
    """Where a provider names refusals in a field, that field is believed before the status, in look-ups as well."""
    one = opened(adapter(provider.url, refused_field="refused"))
    provider.answers.append(JSONResponse({"id": "x", "refused": "declined", "detail": "no"}))
    provider.answers.append(JSONResponse({"refused": "late"}))
    assert call(one, pay(), "k") == Refused("declined", "no")
    assert look_up(one, "k") == Refused("late")
    provider.answers.append(JSONResponse({"id": "x", "refused": None}))
    assert call(one, pay(), "k") == Done("x")
    one.close()


def test_without_a_reference_field_the_key_is_the_reference(provider: Provider) -> None:
    """A provider that answers 204 names nothing."""
    one = opened(adapter(provider.url, reference_field=""))
    provider.answers.append(Response(status_code=204))
    assert call(one, pay(), "k") == Done("k")
    one.close()


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ("Retry-After: 7", 7.0),
        ("Retry-After: Sun, 06 Nov 1994 08:49:57 GMT\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT", 20.0),
        ("Retry-After: soon", None),
        ("X-Other: 1", None),
    ],
)
def test_retry_after_is_seconds_or_a_date_by_the_response_clock(
    provider: Provider, headers: str, wait: float | None
) -> None:
    """A date is compared with the same response's Date, not with our clock."""

    def limited(connection: socket.socket) -> None:
        read_request(connection)
        connection.sendall(f"HTTP/1.1 429 Slow Down\r\n{headers}\r\nContent-Length: 0\r\n\r\n".encode())

    with raw_server(limited) as url:
        one = opened(adapter(url))
        outcome = call(one, pay(), "k")
        assert isinstance(outcome, NotExecuted)
        assert outcome.retry_after == wait
        one.close()


def test_a_response_larger_than_the_cap_is_cut_off(provider: Provider) -> None:
    """A success that cannot be read is unknown; reading stops at the cap."""
    one = opened(adapter(provider.url, max_response_bytes=1000))
    provider.answers += [JSONResponse({"id": "x", "blob": "y" * 2_000_000}), JSONResponse({"id": "x"})]
    assert isinstance(call(one, pay(), "k"), Unknown)
    assert call(one, pay(), "k") == Done("x")
    one.close()


def test_an_unreachable_provider_executed_nothing(provider: Provider) -> None:
    """No connection, no effect."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        one = opened(adapter(f"http://127.0.0.1:{unused.getsockname()[1]}"))
        outcome = call(one, pay(), "k")
        assert isinstance(outcome, NotExecuted)
        assert "before the request was sent" in str(outcome)
        one.close()


def test_a_failed_handshake_executed_nothing(provider: Provider) -> None:
    """Nothing of the request is sent before TLS stands."""
    one = opened(adapter(provider.url.replace("http://", "https://")))
    assert isinstance(call(one, pay(), "k"), NotExecuted)
    assert provider.seen == []
    one.close()


def read_request(connection: socket.socket) -> None:
    """Waits for a whole request."""
    received = b""
    while b'"note": ""}' not in received:
        received += connection.recv(65536)


def reset(connection: socket.socket) -> None:
    """Takes the request and hangs up without a word."""
    read_request(connection)


def broken(connection: socket.socket) -> None:
    """Promises more than it sends."""
    read_request(connection)
    connection.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"id": "')


def gibberish(connection: socket.socket) -> None:
    """Answers in no known protocol."""
    read_request(connection)
    connection.sendall(b"\x00\x01\x02 hello\r\n\r\n")


@pytest.mark.parametrize("talk", [reset, broken, gibberish])
def test_a_peer_that_breaks_off_after_the_request_leaves_it_unknown(provider: Provider, talk: Any) -> None:
    """Once sent, only an answer tells."""
    with raw_server(talk) as url:
        one = opened(adapter(url))
        outcome = call(one, pay(), "k")
        assert isinstance(outcome, Unknown)
        assert "after the request was sent" in outcome.reason
        one.close()


def silent(connection: socket.socket) -> None:
    """Takes the request and says nothing for long."""
    read_request(connection)
    time.sleep(3)


def dripping_head(connection: socket.socket) -> None:
    """Sends its head one byte at a time, for ever: no single read ever times out."""
    read_request(connection)
    connection.sendall(b"HTTP/1.1 200 OK\r\n")
    while True:
        connection.sendall(b"X-A: b\r\n")
        time.sleep(0.05)


def dripping_body(connection: socket.socket) -> None:
    """The same with its body."""
    read_request(connection)
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
    while True:
        connection.sendall(b" ")
        time.sleep(0.05)


@pytest.mark.parametrize("talk", [silent, dripping_head, dripping_body])
def test_no_peer_holds_a_call_beyond_its_timeout(provider: Provider, talk: Any) -> None:
    """The whole call ends by the declared timeout, because a lease is only long enough for that."""
    with raw_server(talk) as url:
        one = opened(adapter(url, timeout_seconds=0.6))
        assert one.semantics.timeout == timedelta(seconds=0.6)
        started = time.monotonic()
        assert isinstance(call(one, pay(), "k"), Unknown)
        assert time.monotonic() - started < 1.0
        one.close()


def test_a_peer_that_never_accepts_costs_the_connect_time_only(provider: Provider) -> None:
    """Connecting has its own, shorter limit, and nothing was sent."""
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        address = full.getsockname()
        waiting = [socket.socket() for _ in range(3)]  # fill the backlog, so that further connections hang
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(address)
        live = opened(adapter(f"http://127.0.0.1:{address[1]}", connect_seconds=0.3, timeout_seconds=5))
        started = time.monotonic()
        assert isinstance(call(live, pay(), "k"), NotExecuted)
        assert time.monotonic() - started < 1.5
        live.close()
        for one in waiting:
            one.close()


def test_proxies_of_the_environment_are_not_used(
    live: HttpAdapter, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The token goes to listed hosts only, whatever the shell says."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    assert isinstance(call(live, pay(), "k"), Done)


@pytest.mark.parametrize("key", ["", "a b", "k\r\nX-Evil: 1", "k\0", "ключ", "k" * 256])
def test_a_key_that_no_header_can_carry_is_never_sent(live: HttpAdapter, provider: Provider, key: str) -> None:
    """Control characters cannot reach the wire."""
    assert isinstance(call(live, pay(), key), NotExecuted)
    assert provider.seen == []


def test_a_wrong_token_executes_nothing_and_is_not_shown(provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    """Credentials can be corrected, so the same key may be sent again; the provider's echo of them is not kept."""
    monkeypatch.setenv("PAY_TOKEN", "wrong-token")
    one = opened(adapter(provider.url))
    outcome = call(one, pay(), "k")
    assert isinstance(outcome, NotExecuted)
    assert outcome.retry_after is None
    assert "wrong-token" not in str(outcome)
    one.close()


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("ftp://127.0.0.1/", "write it as https://host/path"),
        ("127.0.0.1", "write it as https://host/path"),
        ("http://evil.example/v1", "host evil.example is not one of hosts"),
        ("http://127.0.0.1.evil.example/v1", "is not one of hosts"),
        ("http://127.0.0.1@evil.example/v1", "no user"),
        ("http://user:pw@127.0.0.1/v1", "no user, password"),
        ("http://127.0.0.1/v1?token=x", "query"),
    ],
)
def test_only_listed_hosts_may_be_called(url: str, problem: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong address is refused when it is written, and when it comes from the environment, when it is opened."""
    with pytest.raises(DefinitionError, match=problem):
        adapter(url)
    monkeypatch.setenv("PAY_URL", url)
    monkeypatch.setenv("PAY_TOKEN", TOKEN)
    indirect = adapter(dg.EnvVar("PAY_URL"))
    with pytest.raises(DefinitionError, match=problem):
        opened(indirect)


def test_paths_are_checked(provider: Provider) -> None:
    """Each action type needs a path; a look-up needs its key."""
    with pytest.raises(DefinitionError, match=r'field paths: add the path of "pay.send"'):
        adapter(provider.url, paths={}).check_executes(Pay)
    with pytest.raises(DefinitionError, match=r"must contain \{key\}"):
        adapter(provider.url, look_up_path="/effects")
    with pytest.raises(DefinitionError, match="must start with /"):
        adapter(provider.url, paths={"pay.send": "pay"})


def test_semantics_follow_the_configuration(provider: Provider) -> None:
    """What the provider offers is stated, not assumed."""
    promised = adapter(provider.url, visible_after_seconds=2, concurrency=9).semantics
    assert (promised.honours_key, promised.lookup) == (timedelta(days=1), True)
    assert (promised.visible_after, promised.concurrency) == (timedelta(seconds=2), 9)
    bare = adapter(provider.url, look_up_path="", key_kept_hours=None).semantics
    assert (bare.honours_key, bare.lookup) == (None, False)
