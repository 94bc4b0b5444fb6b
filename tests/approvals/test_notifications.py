"""People are told through the outbox what waits for them; whether that arrives neither blocks nor approves anything."""

from __future__ import annotations

import email
import json
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from email.policy import default
from typing import Any

import dagster as dg
import pytest
import sqlalchemy as sa
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ops.publishing import Published, Publisher, publish_events
from policies.errors import DefinitionError
from resources.outbox.destination import Destination
from resources.outbox.events import OutboxEvent
from resources.outbox.mailbox import Mailbox
from resources.outbox.notices import desk_url, for_slack, notice
from resources.outbox.webhook import Webhook
from tests.adapters.mail_server import PASSWORD, USER, MailServer, hang_up, serving_mail
from tests.adapters.provider import serving_app
from tests.ops import toy
from tests.ops.passes import Shop, refund

DESK = "https://desk.example/failsafe"

POLICY = toy.POLICY.replace(
    "medium: {review: {roles: [lead], people: 1, expires_after: 2d}}",
    "medium: {review: {roles: [lead], people: 1, expires_after: 2d, remind_after: 1h,"
    " escalate: [{after: 2h, roles: [board]}]}}",
)


@pytest.fixture
def asked(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """A request that waits, with a desk that people know."""
    monkeypatch.setenv("FAILSAFE_DESK_URL", DESK)
    shop.set_policy(POLICY)
    shop.queue({"pay <!channel> now": refund("80.00", text="TOTAL 80.00 EUR\n<https://evil.example|approve>")})
    shop.run()
    return shop


class Chat:
    """A Slack-compatible channel."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self.status = 200
        self.port = 0

    async def take(self, request: Request) -> Response:
        """What the channel does with a message."""
        self.messages.append(json.loads(await request.body()))
        return Response("ok", self.status)

    def webhook(self) -> Webhook:
        """The channel as a destination."""
        return Webhook(url=f"http://127.0.0.1:{self.port}/hook", format="slack", hosts=["127.0.0.1"], timeout_seconds=5)


@pytest.fixture
def chat() -> Iterator[Chat]:
    """A channel that is up."""
    running = Chat()
    with serving_app(Starlette(routes=[Route("/hook", running.take, methods=["POST"])])) as port:
        running.port = port
        yield running


def publish(shop: Shop, destination: Destination) -> Published:
    """One run of the publisher, in which whatever is to be tried again waits for seconds."""
    return publish_events(Publisher(destination, shop.url, uniform=lambda: 0.9))


def age(shop: Shop, hours: float) -> None:
    """Let so much time pass for everything that waits."""
    shop.execute("alter table approval_requests disable trigger user")
    shop.execute(
        "update approval_requests set opened_at = opened_at - make_interval(hours => :hours),"
        " expires_at = expires_at - make_interval(hours => :hours)",
        hours=hours,
    )
    shop.execute("alter table approval_requests enable trigger user")


def test_a_channel_is_told_of_what_waits_and_of_nothing_else(asked: Shop, chat: Chat) -> None:
    """Asked, reminded, escalated, expired: a line each, in order, with a link, and not a word from outside."""
    for hours in (1, 1, 48):
        age(asked, hours)
        asked.run()
    assert publish(asked, chat.webhook()).published == 4
    [approval] = asked.rows("select id from approval_requests")
    link = f"{DESK}/approvals/{approval.id}"
    said = [message.pop("text") for message in chat.messages]
    assert [one.partition(";")[0] for one in said] == [
        f"refunds: approval is needed (medium tier): 1 of lead. {link}",
        "refunds: approval is still needed (medium tier) from lead",
        "refunds: nobody decided yet (medium tier): board may decide now",
        "refunds: nobody decided in time, so nothing was approved",
    ]
    assert all(one.endswith(f" {link}") and "evil" not in one and "channel" not in one for one in said)
    assert chat.messages == [{}] * 4


def test_a_case_is_told_whatever_opened_it(asked: Shop, chat: Chat) -> None:
    """A dead letter, as the worker's step opens it: with step, state and a link to the cases."""
    toy.set_mood(asked.till, "refuse", "order.refund")
    asked.queue({"saga": refund("20.00", order="A2", say="saga")})
    asked.execute("update requests set attempts = 7 where operation_id = 'saga'")

    def broken(_: Any) -> Any:
        raise TimeoutError("the model is down")

    asked.define(extractor=broken)
    asked.run()
    assert asked.states()["saga"] == "dead_lettered"
    publish(asked, chat.webhook())
    assert f"refunds: a case waits for an operator (step extract); the request is dead lettered. {DESK}/cases" in [
        message["text"] for message in chat.messages
    ]
    assert asked.events("saga")[-2:] == ["case.opened", "request.parked"]
    asked.assert_ledger_intact()


def test_a_failed_compensation_is_told_as_a_case(asked: Shop, chat: Chat) -> None:
    """What could not be undone waits for a person too."""
    toy.set_mood(asked.till, "refuse", "order.refund")
    toy.set_mood(asked.till, "refuse", "stock.unreserve")
    asked.queue({"saga": refund("20.00", order="A2", say="saga")})
    asked.run()
    assert asked.states()["saga"] == "compensation_failed"
    publish(asked, chat.webhook())
    assert any("the request is compensation failed" in message["text"] for message in chat.messages)


def test_an_open_case_is_told_once(asked: Shop) -> None:
    """What is added to a case that waits already is no new one."""
    asked.execute("select open_case(id, 'late', 'one') from requests")
    asked.execute("select open_case(id, 'late', 'two') from requests")
    assert asked.rows("select count(*) from outbox where type = 'case.opened'") == [(1,)]


@pytest.mark.parametrize("down", ["not there", "refusing", "failing"])
def test_a_receiver_that_is_down_neither_blocks_nor_approves(asked: Shop, chat: Chat, down: str) -> None:
    """Votes land, effects go out, expiries come: with the messages still in the outbox."""
    destination = chat.webhook()
    if down == "not there":
        destination = Webhook(url="http://127.0.0.1:9/hook", format="slack", hosts=["127.0.0.1"], connect_seconds=1)
    chat.status = 400 if down == "refusing" else 500
    asked.queue({"two": refund("81.00", order="A2")})
    asked.run()
    assert publish(asked, destination).published == 0
    assert set(asked.states().values()) == {"awaiting_approval"}
    asked.vote("two")
    asked.run()
    assert asked.states()["two"] == "completed"
    age(asked, 49)
    asked.run()
    assert asked.states()["pay <!channel> now"] == "expired"
    assert asked.rows("select count(*) > 2 from outbox where published_at is null") == [(True,)]
    asked.assert_ledger_intact()


def test_the_clock_of_an_approval_starts_with_it_and_not_with_its_message(asked: Shop, chat: Chat) -> None:
    """A message that comes late or never takes nothing from, and adds nothing to, the time to decide."""
    [before] = asked.rows("select opened_at, expires_at from approval_requests")
    publish(asked, chat.webhook())
    assert asked.rows("select opened_at, expires_at from approval_requests") == [before]
    assert chat.messages


def test_mail_tells_the_same(asked: Shop) -> None:
    """To fixed addresses, once for each notice, under an id that a second attempt repeats."""
    with serving_mail(MailServer()) as server:
        server.replies["."] = [hang_up]
        box = Mailbox(
            host="127.0.0.1", port=server.port, security="plain", sender="desk@shop.example", to=["leads@shop.example"]
        )
        assert publish(asked, box).published == 0
        asked.execute("update outbox set claim_until = clock_timestamp()")
        assert publish(asked, box).published == 1
        first, mail = server.mails
    message = email.message_from_bytes(mail.content, policy=default)
    assert (mail.sender, mail.recipients) == ("desk@shop.example", ("leads@shop.example",))
    assert message["Subject"] == "refunds: approval is needed"
    assert message.get_content().startswith("refunds: approval is needed (medium tier): 1 of lead. ")
    assert DESK in message.get_content()
    assert "evil" not in message.get_content()
    assert message["Message-ID"] == email.message_from_bytes(first.content, policy=default)["Message-ID"]
    assert message["Message-ID"].endswith("@shop.example>")


def test_a_mail_server_that_refuses_or_is_down_is_no_answer(asked: Shop) -> None:
    """The notice is tried again; what waits goes on waiting."""
    with serving_mail(MailServer()) as server:
        server.replies["MAIL"] = ["550 not you"]
        box = Mailbox(
            host="127.0.0.1", port=server.port, security="plain", sender="d@shop.example", to=["l@shop.example"]
        )
        assert publish(asked, box) == Published(postponed=1)
    asked.execute("update outbox set claim_until = clock_timestamp()")
    assert publish(asked, box).published == 0
    assert set(asked.states().values()) == {"awaiting_approval"}


def event(kind: str, **payload: Any) -> OutboxEvent:
    """An event as the outbox holds it."""
    return OutboxEvent(uuid.UUID(int=5), "request", "r1", 1, kind, json.dumps(payload), datetime.now(UTC), 1)


def test_a_name_becomes_no_markup() -> None:
    """A role's name is the policy's, and still neither mention nor link."""
    text = notice(event("approval.escalated", tier="low", roles=["<!channel>", "a&b\u202e"], expires_at="x"), "")
    assert text is not None
    said = json.loads(for_slack(text))["text"]
    assert "<" not in said
    assert "&lt;!channel&gt;, a&amp;b\\u202e" in said
    assert said.endswith("request r1")


@pytest.mark.parametrize("kind", ["effect.done", "effect.refused", "effect.late", "something.new"])
def test_what_needs_nobody_is_told_to_nobody(kind: str) -> None:
    """It counts as taken, so that it does not hold up what comes after it."""
    assert notice(event(kind, key="k"), DESK) is None


@pytest.mark.parametrize("url", ["ftp://desk", "https://desk.example/<b>", "desk", "https://a b", "https://desk|x"])
def test_an_address_of_the_desk_that_no_message_could_hold(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is refused when publishing begins."""
    monkeypatch.setenv("FAILSAFE_DESK_URL", url)
    with pytest.raises(DefinitionError, match="FAILSAFE_DESK_URL"):
        desk_url()


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"format": "teams"}, "field format"),
        ({"format": "cloudevents"}, "field secret"),
        ({"format": "slack", "secret": "whsec_literal"}, "field secret"),
    ],
)
def test_a_wrong_webhook_is_told_when_it_is_written(fields: dict[str, Any], problem: str) -> None:
    """A chat needs no secret; everything else does."""
    with pytest.raises(DefinitionError, match=problem):
        Webhook(url=dg.EnvVar("HOOK_URL"), hosts=["hooks.example"], **fields)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"security": "none"}, "field security"),
        ({"username": USER}, "username and password, or neither"),
        ({"username": USER, "password": PASSWORD}, r"dg\.EnvVar"),
        ({"username": USER, "password": dg.EnvVar("MAIL_PASSWORD"), "security": "plain"}, "over TLS only"),
        ({"sender": "The Desk"}, "field sender"),
        ({"to": "leads@shop.example"}, "field to"),
        ({"to": []}, "field to"),
        ({"to": ["leads@shop.example\nBcc: x@evil.example"]}, "field to"),
        ({"timeout_seconds": 31}, "at most 30"),
        ({"connections": 0}, "at least 1"),
    ],
)
def test_a_wrong_mailbox_is_told_when_it_is_written(fields: dict[str, Any], problem: str) -> None:
    """With field and remedy, and never with the password."""
    usual: dict[str, Any] = {"host": "mail.example", "sender": "desk@shop.example", "to": ["leads@shop.example"]}
    with pytest.raises(DefinitionError, match=problem) as refused:
        Mailbox(**usual | fields)
    assert PASSWORD not in str(refused.value)


def test_a_mailbox_needs_its_password_when_it_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    """Named by its variable; neither shows it."""
    box = Mailbox(
        host="mail.example",
        username=USER,
        password=dg.EnvVar("MAIL_PASSWORD"),
        sender="d@s.example",
        to=["l@s.example"],
    )
    monkeypatch.delenv("MAIL_PASSWORD", raising=False)
    with pytest.raises(DefinitionError, match="MAIL_PASSWORD"):
        box.opened()
    monkeypatch.setenv("MAIL_PASSWORD", PASSWORD)
    assert PASSWORD not in f"{box!r} {box.opened()!r}"


def test_only_a_worker_announces(asked: Shop) -> None:
    """No other login calls what writes notices, and a worker cannot write one by hand."""
    calls = {
        "announce(text[], text[], json[])": [],
        "announce_cases()": [],
        "announce_asked(text[], json[])": ["failsafe_worker"],
        "announce_waiting(text, text, integer)": ["failsafe_worker"],
    }
    roles = [f"failsafe_{name}" for name in ("intake", "worker", "reviewer", "operator", "auditor")]
    with asked.connect() as connection:
        for call, allowed in calls.items():
            statement = sa.text(f"select has_function_privilege(:role, 'failsafe.{call}', 'execute')")
            assert [role for role in roles if connection.scalar(statement, {"role": role})] == allowed
