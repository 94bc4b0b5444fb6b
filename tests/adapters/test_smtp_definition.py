"""Defining the mail adapter: mistakes are told when the location loads, not when the first mail is due."""

from __future__ import annotations

import json
from typing import Any

import dagster as dg
import pytest

from policies.errors import DefinitionError
from policies.outcomes import Done
from resources.adapters.base import opened
from tests.adapters.mail_server import USER, MailServer, serving_mail
from tests.adapters.mails import Tell, adapter, send

SERVER = MailServer(port=2525)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"security": "ssl"}, "one of starttls, tls, plain"),
        ({"username": USER}, "username and password, or neither"),
        ({"password": dg.EnvVar("MAIL_PASSWORD"), "security": "tls"}, "username and password, or neither"),
        ({"username": USER, "password": dg.EnvVar("MAIL_PASSWORD")}, "over TLS only"),
        ({"password": "literal"}, r"dg\.EnvVar"),
        ({"sender": "The shop <refunds@shop.example>"}, "field sender: write a plain mail address"),
        ({"sender": "refunds@shop.example\r\nBcc: eve@evil.example"}, "field sender"),
        ({"subjects": {}}, "must name the same action types"),
        ({"timeout_seconds": 0}, "timeout above zero"),
    ],
)
def test_a_wrong_definition_is_told_when_it_is_written(fields: dict[str, Any], problem: str) -> None:
    """With field and remedy."""
    with pytest.raises(DefinitionError, match=problem):
        adapter(SERVER, **fields)


def test_a_sender_from_the_environment_is_checked_when_it_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """An address that is none never reaches the wire."""
    monkeypatch.setenv("MAIL_SENDER", "nobody")
    with pytest.raises(DefinitionError, match="field sender"):
        opened(adapter(SERVER, sender=dg.EnvVar("MAIL_SENDER")))
    monkeypatch.setenv("MAIL_SENDER", "refunds@shop.example")
    with serving_mail(MailServer()) as server:
        assert isinstance(send(server, sender=dg.EnvVar("MAIL_SENDER")), Done)


@pytest.mark.parametrize(
    ("field", "value", "problem"),
    [
        ("to", "address", "no parameter address; there are email, order_id, amount, note"),
        ("subjects", "{order}", "no parameter order"),
        ("texts", "{amount.minor}", "the name of a parameter alone"),
        ("texts", "{amount!r}", "the name of a parameter alone"),
        ("texts", "{amount:>9}", "the name of a parameter alone"),
        ("texts", "{}", "the name of a parameter alone"),
        ("texts", "{amount", "subject or text of"),
    ],
)
def test_templates_use_the_parameters_of_their_action_only(field: str, value: str, problem: str) -> None:
    """A typing mistake shows when the location loads, not when the first mail is due."""
    with pytest.raises(DefinitionError, match=problem):
        adapter(SERVER, **{field: {"customer.tell": value}}).check_executes(Tell)
    adapter(SERVER).check_executes(Tell)
    nothing: dict[str, str] = {}
    with pytest.raises(DefinitionError, match=r'add "customer\.tell"'):
        adapter(SERVER, to=nothing, subjects=nothing, texts=nothing).check_executes(Tell)


def test_the_target_changes_with_whom_and_what_it_reaches_only() -> None:
    """Another sender or another text is another proposal; a longer timeout is not."""
    target = adapter(SERVER).target()
    assert json.loads(target)[0] == ["127.0.0.1", SERVER.port, "", "refunds@shop.example"]
    assert adapter(SERVER).provider() == f"127.0.0.1:{SERVER.port}"
    assert adapter(SERVER, timeout_seconds=9).target() == target
    assert adapter(SERVER, texts={"customer.tell": "other"}).target() != target
    assert adapter(SERVER, sender="other@shop.example").target() != target
