"""Signatures, against an implementation that shares nothing with ours."""

from __future__ import annotations

import base64
import json
import time
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.errors import DefinitionError, NotAuthenticated
from resources.outbox.signing import signature, signing_key, verify_webhook
from tests.outbox.conftest import Outbox, new_aggregate
from tests.outbox.receiver import KEY, SECRET, is_signed

NOW = 1_674_087_231.0


def headers(body: bytes, key: bytes = KEY, at: float = NOW) -> dict[str, str]:
    """A request's headers as a sender makes them."""
    stamp = str(int(at))
    return {"Webhook-Id": "e1", "Webhook-Timestamp": stamp, "Webhook-Signature": signature(key, "e1", stamp, body)}


def lower(found: dict[str, str]) -> dict[str, str]:
    """Header names as a server gives them."""
    return {name.lower(): value for name, value in found.items()}


@given(body=st.binary(), key=st.binary(min_size=24, max_size=64))
def test_ours_and_an_independent_implementation_agree(body: bytes, key: bytes) -> None:
    """On every body and key, and neither takes another body or another key."""
    made = lower(headers(body, key))
    assert is_signed(made, body, key)
    assert not is_signed(made, body + b" ", key)
    assert not is_signed(made, body, key[::-1] + b"x")


def test_the_example_of_the_specification() -> None:
    """A fixed vector, computed elsewhere: secret, id, time and body of a published example."""
    key = signing_key("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "here")
    body = b'{"test": 2432232314}'
    found = signature(key, "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", body)
    assert found == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_a_delivery_is_verified_by_what_consumers_are_given(outbox: Outbox) -> None:
    """The event comes back, once its signature, its time and its id are right."""
    outbox.add(new_aggregate(), payload='{"amount": 12.50, "note": "Grüße"}')
    outbox.publish()
    (delivery,) = outbox.receiver.deliveries
    assert verify_webhook(delivery.headers, delivery.body, SECRET) == delivery.event
    assert abs(int(delivery.headers["webhook-timestamp"]) - time.time()) < 30
    assert delivery.headers["content-type"] == "application/cloudevents+json; charset=utf-8"
    event = delivery.event
    (row,) = outbox.rows("select id, created_at from outbox")
    assert event == {
        "specversion": "1.0",
        "id": str(row.id),
        "source": "dagster-failsafe",
        "type": "effect.done",
        "subject": event["subject"],
        "time": row.created_at.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "sequence": "0000000000000000001",
        "datacontenttype": "application/json",
        "data": {"amount": 12.5, "note": "Grüße"},
    }
    assert b"12.50" in delivery.body, "numbers are written as they are stored"


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"Webhook-Signature": ""}, "no webhook-signature fits"),
        ({"Webhook-Signature": "v1,AAAA"}, "no webhook-signature fits"),
        ({"Webhook-Signature": "v1,ü"}, "no webhook-signature fits"),
        ({"Webhook-Id": "e2"}, "no webhook-signature fits"),
        ({"Webhook-Id": ""}, "no webhook-id"),
        ({"Webhook-Timestamp": "1674087232"}, "no webhook-signature fits"),
        ({"Webhook-Timestamp": "soon"}, "no webhook-timestamp"),
        ({"Webhook-Timestamp": "-1"}, "no webhook-timestamp"),
        ({"Webhook-Timestamp": ""}, "no webhook-timestamp"),
        ({"Webhook-Timestamp": "1"}, "too far from this clock"),
    ],
)
def test_what_was_changed_on_the_way_is_refused(change: dict[str, str], problem: str) -> None:
    """Every header counts, and the body does."""
    body = b'{"id": "e1"}'
    made = headers(body)
    assert verify_webhook(made, body, SECRET, now=NOW) == {"id": "e1"}
    with pytest.raises(NotAuthenticated, match=problem):
        verify_webhook(made | change, body, SECRET, now=NOW)
    with pytest.raises(NotAuthenticated, match="no webhook-signature fits"):
        verify_webhook(made, b'{"id": "e2"}', SECRET, now=NOW)


def test_an_old_request_is_not_taken_again() -> None:
    """Within the tolerance either way it is; beyond it, whoever kept it cannot use it."""
    body = json.dumps({"id": "e1"}).encode()
    made = headers(body)
    for seconds in (-300, 0, 300):
        verify_webhook(made, body, SECRET, now=NOW + seconds)
    for seconds in (-302, 302):
        with pytest.raises(NotAuthenticated, match="too far"):
            verify_webhook(made, body, SECRET, now=NOW + seconds)
    with pytest.raises(NotAuthenticated, match="too far"):
        verify_webhook(made, body, SECRET, now=NOW + 3, tolerance=timedelta(seconds=2))
    with pytest.raises(NotAuthenticated, match="too far"):
        verify_webhook(made, body, SECRET)  # by the clock of today


def test_one_of_several_signatures_is_enough() -> None:
    """A sender that changes its secret signs with both for a while."""
    body, other = b"{}", signature(KEY[::-1], "e1", str(int(NOW)), b"{}")
    made = headers(body)
    made["Webhook-Signature"] = f"v1a,x {other} {made['Webhook-Signature']}"
    verify_webhook(made, body, SECRET, now=NOW)


@pytest.mark.parametrize(
    "secret",
    ["", "whsec_", "s3cret", "whsec_not base64!", f"whsec_{base64.b64encode(b'x' * 23).decode()}", "whsec_" + "A" * 88],
)
def test_a_secret_of_another_form_is_refused_without_being_repeated(secret: str) -> None:
    """A short one could be guessed; a mistyped one would sign with something else than meant."""
    with pytest.raises(DefinitionError, match="24 to 64 random bytes") as refused:
        signing_key(secret, "here")
    assert not secret or secret == "whsec_" or secret not in str(refused.value)
