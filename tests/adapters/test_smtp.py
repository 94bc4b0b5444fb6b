"""The mail adapter against a real server on loopback, with and without TLS, and against servers that break off."""

from __future__ import annotations

import email
import re
import time
from collections.abc import Iterator
from datetime import timedelta
from email.message import EmailMessage
from email.policy import default
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from policies.errors import NotExecuted
from policies.outcomes import Done, Refused, Semantics
from resources.adapters.conformance import Status, conformance
from resources.adapters.outcome import Unknown
from tests.adapters.mail_server import (
    PASSWORD,
    USER,
    Act,
    MailServer,
    certificate,
    drip,
    hang_up,
    say_nothing,
    serving_mail,
)
from tests.adapters.mails import KEY, adapter, send, tell


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[MailServer]:
    """A server that takes mail without TLS."""
    monkeypatch.setenv("MAIL_PASSWORD", PASSWORD)
    with serving_mail(MailServer()) as running:
        yield running


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """A certificate: the file to trust it by, and the server's context."""
    return certificate(tmp_path_factory.mktemp("tls"))


def read(content: bytes) -> EmailMessage:
    """A message as its reader has it."""
    return email.message_from_bytes(content, policy=default)


def test_a_mail_says_what_the_action_says_to_whom_it_says(server: MailServer) -> None:
    """Recipient, subject and text come from the action; the server's answer is kept."""
    outcome = send(server, tell(note="Grüße"))
    (mail,) = server.mails
    message = read(mail.content)
    assert outcome == Done(message["Message-ID"], {"answer": "250 queued as 4711"})
    assert (mail.sender, mail.recipients) == ("refunds@shop.example", ("ann@customer.example",))
    assert (message["From"], message["To"]) == ("refunds@shop.example", "ann@customer.example")
    assert message["Subject"] == "Order A-17: your refund"
    assert message["Auto-Submitted"] == "auto-generated"
    assert message["Date"] is not None
    text = ["We paid back 12.50 EUR.", "", "Grüße", ".", "The shop"]
    assert message.get_content().splitlines() == text, "a lone full stop does not end it"


def test_the_message_id_follows_from_the_key(server: MailServer) -> None:
    """A receiver that compares ids drops the second one of a message; other keys have other ids."""
    first, again, other = send(server), send(server), send(server, key=KEY.replace("r1", "r2"))
    assert first.reference == again.reference != other.reference
    assert re.fullmatch(r"<[0-9a-f]{64}@shop\.example>", first.reference)
    ids = [read(body)["Message-ID"] for body in server.bodies]
    assert ids == [first.reference, again.reference, other.reference]


def test_several_recipients_get_one_mail(server: MailServer) -> None:
    """Each address of the action's list stands in the envelope once, and nobody else does."""
    send(server, tell(["ann@customer.example", "bob@customer.example"]))
    assert server.mails[0].recipients == ("ann@customer.example", "bob@customer.example")
    assert read(server.mails[0].content)["To"] == "ann@customer.example, bob@customer.example"


@pytest.mark.parametrize(
    "to",
    [
        "",
        "ann",
        "ann@",
        "Ann <ann@customer.example>",
        "ann@customer.example, eve@evil.example",
        "ann@customer.example\r\nRCPT TO:<eve@evil.example>",
        "ann@customer.example>\r\nRCPT TO:<eve@evil.example",
        "ann@customer.example\n",
        "ann@customer.example ",
        "änn@customer.example",
        "ann@customer..example",
        "ann@-customer.example",
        f"{'a' * 65}@customer.example",
        f"ann@{'a.' * 130}example",
        [],
        ["ann@customer.example", "eve"],
        [f"a{number}@customer.example" for number in range(21)],
    ],
)
def test_what_is_no_plain_address_is_refused_before_anything_is_sent(server: MailServer, to: str | list[str]) -> None:
    """An address can neither name a second person nor carry a command."""
    outcome = send(server, tell(to))
    assert isinstance(outcome, Refused)
    assert outcome.code == "bad_recipient"
    assert (server.heard, server.mails) == ([], [])


HEADERS = {"from", "to", "subject", "date", "message-id", "auto-submitted", "mime-version"} | {
    "content-type",
    "content-transfer-encoding",
}


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    order_id=st.text()
    | st.sampled_from(["x\r\nBcc: eve@evil.example", "x\n\nhidden", "x\u2028Bcc: e@e.example", "\ud800"]),
    note=st.text()
    | st.sampled_from(["\r\n.\r\nMAIL FROM:<eve@evil.example>\r\n", "\n.\n", "\r.\r", "\x00", "{amount}"]),
)
def test_no_value_becomes_a_header_a_recipient_or_a_second_mail(server: MailServer, order_id: str, note: str) -> None:
    """Whatever subject and text hold, one mail with our headers goes to the one recipient."""
    server.mails.clear()
    server.heard.clear()
    assert isinstance(send(server, tell(order_id=order_id, note=note)), Done)
    (mail,) = server.mails
    assert mail.recipients == ("ann@customer.example",)
    # Nobody waits for the answer to QUIT, so the server may hear it later.
    assert [line[:4] for line in server.heard if line != "QUIT"] == ["EHLO", "MAIL", "RCPT", "DATA"]
    message = read(mail.content)
    assert {name.lower() for name in message.keys()} == HEADERS  # noqa: SIM118  # a message has no other way to list them
    assert message["To"] == "ann@customer.example"
    assert mail.content.isascii()
    assert not re.search(rb"(?<!\r)\n|\r(?!\n)", mail.content), "every line ends alike, so that none can end the mail"


def test_over_starttls_the_server_is_checked_and_signed_in_to(
    server: MailServer, tls: tuple[Path, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Name, password and mail go out only once the connection is encrypted with a certificate that fits."""
    monkeypatch.setenv("SSL_CERT_FILE", str(tls[0]))
    server.starttls = tls[1]
    secure: dict[str, Any] = {"security": "starttls", "username": USER, "password": dg.EnvVar("MAIL_PASSWORD")}
    assert isinstance(send(server, **secure), Done)
    assert (server.mails[0].encrypted, server.mails[0].user) == (True, USER)
    assert [line.partition(" ")[0] for line in server.heard[:4]] == ["EHLO", "STARTTLS", "EHLO", "AUTH"]
    server.mechanisms = "LOGIN CRAM-MD5"
    assert isinstance(send(server, **secure), Done)
    server.mechanisms = "CRAM-MD5"
    assert isinstance(send(server, **secure), NotExecuted)


def test_tls_from_the_first_byte(server: MailServer, tls: tuple[Path, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """As on port 465."""
    monkeypatch.setenv("SSL_CERT_FILE", str(tls[0]))
    server.tls = tls[1]
    outcome = send(server, security="tls", username=USER, password=dg.EnvVar("MAIL_PASSWORD"))
    assert isinstance(outcome, Done)
    assert (server.mails[0].encrypted, server.mails[0].user) == (True, USER)


@pytest.mark.parametrize("security", ["starttls", "tls"])
def test_a_certificate_that_nobody_vouches_for_gets_nothing(
    server: MailServer, tls: tuple[Path, Any], security: str
) -> None:
    """Neither password nor mail."""
    server.starttls, server.tls = (tls[1], None) if security == "starttls" else (None, tls[1])
    outcome = send(server, security=security, username=USER, password=dg.EnvVar("MAIL_PASSWORD"))
    assert isinstance(outcome, NotExecuted)
    assert "no TLS with the mail server" in str(outcome)
    assert not any(line.startswith(("AUTH", "MAIL")) for line in server.heard)


def test_a_server_without_starttls_gets_nothing(server: MailServer) -> None:
    """Whoever strips the offer from the connection does not get the mail instead."""
    outcome = send(server, security="starttls")
    assert isinstance(outcome, NotExecuted)
    assert not any(line.startswith("MAIL") for line in server.heard)


def test_what_came_before_the_handshake_is_not_read_as_part_of_it(
    server: MailServer, tls: tuple[Path, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Replies slipped in beside the answer to STARTTLS do not count: the real ones after it do."""
    monkeypatch.setenv("SSL_CERT_FILE", str(tls[0]))
    server.starttls = tls[1]
    server.replies["STARTTLS"] = ["220 go ahead\r\n250 mail.example\r\n250 ok\r\n250 ok\r\n354 go on\r\n250 stolen"]
    outcome = send(server, security="starttls")
    assert isinstance(outcome, (Done, NotExecuted))
    assert "stolen" not in str(outcome)
    assert len(server.mails) == isinstance(outcome, Done)


def test_a_wrong_password_executes_nothing_and_is_not_shown(
    server: MailServer, tls: tuple[Path, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Credentials can be corrected, so the same key may be tried again; the server's echo of them is not kept."""
    monkeypatch.setenv("SSL_CERT_FILE", str(tls[0]))
    monkeypatch.setenv("MAIL_PASSWORD", "wrong-password")
    server.tls = tls[1]
    outcome = send(server, security="tls", username=USER, password=dg.EnvVar("MAIL_PASSWORD"))
    assert isinstance(outcome, NotExecuted)
    assert str(outcome) == "the mail server refused the credentials (535)"
    assert server.mails == []


@pytest.mark.parametrize("command", ["greeting", "EHLO", "MAIL", "RCPT", "DATA", "."])
@pytest.mark.parametrize("code", [421, 450, 550, 530])
def test_a_negative_reply_means_what_the_table_says(server: MailServer, command: str, code: int) -> None:
    """For now or about us: not executed. For good and about this mail: refused. Never unknown: it said so."""
    server.replies[command] = [f"{code} no thanks"]
    outcome = send(server)
    if code == 550 and command not in ("greeting", "EHLO"):
        assert outcome == Refused("smtp_550", "550 no thanks")
    else:
        assert isinstance(outcome, NotExecuted)


@pytest.mark.parametrize("replies", [["250 ok", "550 no"], ["450 later", "550 no"], ["550 no", "250 ok"]])
def test_one_bad_recipient_of_several_and_nobody_gets_it(server: MailServer, replies: list[str | Act]) -> None:
    """A mail that went to some could never be sent again to the others under the same key."""
    server.replies["RCPT"] = replies
    outcome = send(server, tell(["ann@customer.example", "bob@customer.example"]))
    assert outcome == Refused("smtp_550", "550 no")
    assert server.mails == []
    assert "DATA" not in server.heard


@pytest.mark.parametrize("act", [hang_up, drip, say_nothing])
@pytest.mark.parametrize("command", ["greeting", "EHLO", "MAIL", "RCPT", "DATA"])
def test_a_session_that_breaks_before_the_message_executed_nothing(server: MailServer, command: str, act: Act) -> None:
    """And it ends by the declared timeout, however the server behaves."""
    server.replies[command] = [act]
    started = time.monotonic()
    outcome = send(server, timeout_seconds=0.5)
    assert time.monotonic() - started < 1.0
    assert isinstance(outcome, NotExecuted)
    assert "before the message was sent" in str(outcome)
    assert server.mails == []


@pytest.mark.parametrize("act", [hang_up, drip, say_nothing, "250-x", "nonsense", "199 hm", "354 again"])
def test_a_session_that_breaks_after_the_message_leaves_it_unknown(server: MailServer, act: Act | str) -> None:
    """Only a reply tells: the server may have taken it, as this one has."""
    server.replies["."] = [act]
    started = time.monotonic()
    outcome = send(server, timeout_seconds=0.5)
    assert time.monotonic() - started < 1.0
    assert isinstance(outcome, Unknown)
    assert len(server.mails) == 1


def test_a_server_that_never_says_goodbye_does_not_undo_the_mail(server: MailServer) -> None:
    """Once it is taken it is done, at once."""
    server.replies["QUIT"] = [say_nothing]
    started = time.monotonic()
    assert isinstance(send(server), Done)
    assert time.monotonic() - started < 1.0


def test_an_unreachable_server_executed_nothing(server: MailServer) -> None:
    """No connection, no mail."""
    assert isinstance(send(server, port=1), NotExecuted)
    assert isinstance(send(server, host="no.such.host.invalid"), NotExecuted)


def test_a_reply_without_end_is_cut_off(server: MailServer) -> None:
    """A server cannot fill the worker's memory."""
    server.replies["EHLO"] = ["250-x\r\n" * 20_000 + "250 x"]
    assert isinstance(send(server), NotExecuted)
    server.replies["EHLO"] = [f"250 {'x' * 100_000}"]
    assert isinstance(send(server), NotExecuted)


def test_conformance_of_a_provider_with_neither_key_nor_look_up(
    server: MailServer, tls: tuple[Path, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It keeps what it promises, which is little, and its secret, which is all."""
    monkeypatch.setenv("SSL_CERT_FILE", str(tls[0]))
    server.tls = tls[1]
    one = adapter(server, security="tls", username=USER, password=dg.EnvVar("MAIL_PASSWORD"))
    report = conformance(one, tell())
    report.check()
    checks = {check.name: check.status for check in report.checks}
    assert checks["the same key replays the same outcome"] is Status.NOT_PROMISED
    assert checks["no secret is ever shown"] is Status.PASSED
    assert one.semantics == Semantics(timeout=timedelta(seconds=5))
    assert one.semantics.blind
    limited = adapter(server, concurrency=2, max_in_flight=3, per_second=0.5).semantics
    assert (limited.concurrency, limited.max_in_flight, limited.per_second) == (2, 3, 0.5)
