"""The intake API: every answer means one thing, and a request sent twice is stored once."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import APIOperation, GenerationMode
from schemathesis.checks import load_all_checks

from console.api.body import MAX_BODY
from console.desk.application import application
from policies.policy import Policy
from tests.desk.conftest import served
from tests.postgres import Database
from tests.store.requests import Person, Superuser
from tests.store.workflow import refunds


@pytest.fixture
def superuser(database: Database) -> Iterator[Superuser]:
    """A writer that no duty binds, on this test's database."""
    superuser = Superuser(database)
    yield superuser
    superuser.engine.dispose()


@pytest.fixture
def service(superuser: Superuser) -> Person:
    """A program that submits."""
    return superuser.person("robot", ["clerk"], kind="service")


@pytest.fixture
def url(database: Database) -> Iterator[str]:
    """Where the API is served."""
    with served(application(database.url(), {"refunds": refunds}, loopback=True)) as url:
        yield url


@pytest.fixture
def api(url: str, service: Person) -> Iterator[httpx.Client]:
    """The program's own connection."""
    with httpx.Client(base_url=url, headers={"authorization": f"Bearer {service.token}"}, timeout=30) as client:
        yield client


def submission(**changed: Any) -> dict[str, Any]:
    """A good body, with changes; None leaves a field out."""
    body = {
        "workflow": "refunds",
        "operation_id": "order-1",
        "payload": {"order_id": "order-1", "amount": "60.00 EUR"},
    } | changed
    return {name: value for name, value in body.items() if value is not None}


def problem(response: httpx.Response, status: int) -> dict[str, Any]:
    """The problem details of a refusal."""
    assert (response.status_code, response.headers["content-type"]) == (status, "application/problem+json")
    content: dict[str, Any] = response.json()
    assert content["status"] == status
    return content


def test_a_submission_is_acknowledged(api: httpx.Client, superuser: Superuser) -> None:
    """202 with a receipt and where to ask; the same again is a replay of the same request."""
    first = api.post("/v1/requests", json=submission(subject="E7", tenant="north"))
    assert first.status_code == 202
    receipt = first.json()
    assert (receipt["operation_id"], receipt["workflow"], receipt["replayed"]) == ("order-1", "refunds", False)
    assert first.headers["location"] == f"/v1/requests/{receipt['request_id']}"
    again = api.post("/v1/requests", json=submission(subject="E7", tenant="north"))
    assert (again.status_code, again.json()) == (202, receipt | {"replayed": True})
    assert superuser.row("select tenant, subject, state from requests") == ("north", "E7", "received")


def test_another_payload_under_the_same_name_is_a_conflict(api: httpx.Client, superuser: Superuser) -> None:
    """409 names the field; nothing is stored; another tenant's name is its own."""
    api.post("/v1/requests", json=submission())
    other = submission(payload={"order_id": "order-1", "amount": "61.00 EUR"})
    refused = problem(api.post("/v1/requests", json=other), 409)
    assert [one["field"] for one in refused["errors"]] == ["operation_id"]
    assert api.post("/v1/requests", json=other | {"tenant": "north"}).status_code == 202
    assert superuser.value("select count(*) from requests") == 2


@pytest.mark.parametrize("token", ["", "Bearer", "Bearer fst_unknown", "Basic abc", "Bearer \x00"])
def test_without_a_good_token_nothing_is_said(url: str, token: str) -> None:
    """401 with the scheme, before anything of the body is looked at."""
    headers = {"authorization": token} if token and "\x00" not in token else {}
    for method, path in (("POST", "/v1/requests"), ("GET", f"/v1/requests/{uuid.uuid4()}")):
        response = httpx.request(method, url + path, headers=headers)
        problem(response, 401)
        assert response.headers["www-authenticate"] == "Bearer"


def test_a_session_cookie_is_no_token(url: str, superuser: Superuser) -> None:
    """The browser's session opens no API, so no page can use it behind somebody's back."""
    person = superuser.person("lead", ["operator"])
    with httpx.Client(base_url=url) as client:
        client.post("/sign-in", data={"token": person.token})
        problem(client.get(f"/v1/requests/{uuid.uuid4()}"), 401)
        problem(client.get("/v1/requests/x", headers={"authorization": f"Bearer {client.cookies['failsafe']}"}), 404)
        problem(
            client.get(
                f"/v1/requests/{uuid.uuid4()}", headers={"authorization": f"Bearer {client.cookies['failsafe']}"}
            ),
            401,
        )


def test_a_disabled_principal_is_out(api: httpx.Client, superuser: Superuser) -> None:
    """From then on, at once."""
    assert api.post("/v1/requests", json=submission()).status_code == 202
    superuser.run("select disable_principal('robot')")
    problem(api.post("/v1/requests", json=submission()), 401)


def test_who_may_have_nothing_done_is_told_at_the_door(
    api: httpx.Client, superuser: Superuser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the policy permits no action to any of one's roles: 403, and nothing is stored."""
    strict = Policy.load(
        {
            "version": "1",
            "mode": "shadow",
            "permissions": {"order.refund": ["support"]},
            "tiers": [],
            "decisions": dict.fromkeys(("low", "medium", "high", "critical"), "refuse"),
        },
        "here",
    )
    monkeypatch.setattr(type(refunds), "policy_in_force", lambda _self: strict)
    assert "support" in problem(api.post("/v1/requests", json=submission()), 403)["detail"]
    assert superuser.value("select count(*) from requests") == 0


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (submission(workflow=None), "workflow"),
        (submission(workflow="other"), "workflow"),
        (submission(workflow=["refunds"]), "workflow"),
        (submission(operation_id=None), "operation_id"),
        (submission(operation_id="a\nb"), "operation_id"),
        (submission(operation_id="x" * 256), "operation_id"),
        (submission(subject=7), "subject"),
        (submission(subject=""), "subject"),
        (submission(tenant="x" * 61), "tenant"),
        (submission(tenant=1), "tenant"),
        (submission(tenant="a\x00"), "tenant"),
        (submission(tenant="a\u009f"), "tenant"),
        (submission(payload=None), "payload"),
        (submission(payload=[]), "payload"),
        (submission(payload={"order_id": "order-1"}), "payload.amount"),
        (submission(payload={"order_id": "o", "amount": "1", "more": 1}), "payload.more"),
        (submission(payload={"order_id": "o", "amount": "\ud800"}), "payload"),
        (submission(roles=["admin"]), "roles"),
        ([], ""),
    ],
)
def test_a_wrong_field_is_named_with_its_reason(
    api: httpx.Client, superuser: Superuser, body: object, field: str
) -> None:
    """422, and nothing is stored."""
    content = json.dumps(body).encode()  # in ASCII, so that a lone surrogate can be sent at all
    sent = api.post("/v1/requests", content=content, headers={"content-type": "application/json"})
    refused = problem(sent, 422)
    assert field in [one["field"] for one in refused["errors"]]
    assert all(one["reason"] for one in refused["errors"])
    assert superuser.value("select count(*) from requests") == 0


@pytest.mark.parametrize(
    "body", [b"", b"{", b"\xff", b'{"workflow": "refunds", "workflow": "x"}', b"[" * 100_000, b"NaN"]
)
def test_what_is_no_json_is_said(api: httpx.Client, body: bytes) -> None:
    """422, whatever the bytes."""
    problem(api.post("/v1/requests", content=body, headers={"content-type": "application/json"}), 422)


def test_bounds_and_media_types(api: httpx.Client) -> None:
    """413 for too much, 415 for another type, 404 and 405 as problems as well."""
    json_type = {"content-type": "application/json"}
    problem(api.post("/v1/requests", content=b" " * (MAX_BODY + 1), headers=json_type), 413)
    large = submission(payload={"order_id": "o", "amount": "1", "message": "x" * 1_048_576})
    assert problem(api.post("/v1/requests", json=large), 422)["errors"][0]["field"] == "payload"
    for content_type in ("text/plain", "application/x-www-form-urlencoded"):
        problem(api.post("/v1/requests", content=b"{}", headers={"content-type": content_type}), 415)
    problem(api.get("/v1/requests"), 405)
    problem(api.get("/v1/nowhere"), 404)
    problem(api.get("/v1/requests/not-an-id"), 404)


def test_one_asks_about_ones_own_requests(api: httpx.Client, url: str, superuser: Superuser) -> None:
    """State and reason for who submitted it and for overseers; for others it is as if there were none."""
    request_id = api.post("/v1/requests", json=submission()).json()["request_id"]
    superuser.move(uuid.UUID(request_id), "review_needed", "needs_review")
    superuser.run("update requests set reason = 'no amount <stated>'")
    path = f"/v1/requests/{request_id}"
    own = api.get(path).json()
    assert (own["state"], own["reason"], own["operation_id"]) == ("needs_review", "no amount <stated>", "order-1")
    for role, status in (("operator", 200), ("auditor", 200), ("clerk", 404)):
        token = superuser.person(role, [role]).token
        assert httpx.get(url + path, headers={"authorization": f"Bearer {token}"}).status_code == status
    problem(api.get(f"/v1/requests/{uuid.uuid4()}"), 404)


def test_the_database_away_is_said(service: Person) -> None:
    """503: send the same again later."""
    with served(application("postgresql+psycopg://x:the-password@127.0.0.1:1/none", {}, loopback=True)) as url:
        response = httpx.get(f"{url}/v1/requests/{uuid.uuid4()}", headers={"authorization": f"Bearer {service.token}"})
        problem(response, 503)
        assert "the-password" not in response.text
        page = httpx.get(f"{url}/inbox", cookies={"failsafe": "fss_x"})
        assert (page.status_code, "the-password" in page.text) == (503, False)


CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
    "positive_data_acceptance",
)


def statuses_of(operation: APIOperation[Any, Any, Any, Any], mode: GenerationMode, token: str) -> set[int]:
    """The statuses that an operation answers to requests made from the document, each answer as it promises."""
    found: set[int] = set()
    checks = [schemathesis.checks.CHECKS.get_one(name) for name in CHECKS]

    @settings(max_examples=50, suppress_health_check=list(HealthCheck), phases=[Phase.generate], database=None)
    @given(operation.as_strategy(generation_mode=mode))
    def send(case: Any) -> None:
        response = case.call(headers={"Authorization": f"Bearer {token}"})
        found.add(response.status_code)
        case.validate_response(response, checks=checks)

    send()
    return found


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
def test_the_api_keeps_what_its_document_says(url: str, service: Person, mode: GenerationMode) -> None:
    """Schemathesis sends good and bad requests made from the OpenAPI document; no answer breaks its promise."""
    load_all_checks()
    schema = schemathesis.openapi.from_url(f"{url}/v1/openapi.json")
    submit, standing = schema["/v1/requests"]["POST"], schema["/v1/requests/{request_id}"]["GET"]
    assert statuses_of(submit, mode, service.token) >= {202 if mode is GenerationMode.POSITIVE else 422}
    assert 404 in statuses_of(standing, mode, service.token)
