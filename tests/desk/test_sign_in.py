"""Coming in and going out: with one's own token, within limits, and with a cookie that goes nowhere else."""

from __future__ import annotations

import time

import httpx
import pytest

from console.desk.application import application
from console.desk.csrf import csrf_token
from console.desk.headers import CONTENT_SECURITY_POLICY
from console.desk.sign_in_limit import FAILURES, MAX_ADDRESSES, WINDOW, SignInLimit
from tests.desk.conftest import Visitor, served
from tests.postgres import Database
from tests.store.requests import AskedRequest, Person, Superuser


def test_the_session_is_kept_in_one_guarded_cookie(visitor: Visitor, lead: Person) -> None:
    """HttpOnly, same site only, for as long as the session; its secret stands in no page."""
    response = visitor.sign_in(lead)
    assert (response.status_code, response.headers["location"]) == (303, "/inbox")
    [cookie] = response.headers.get_list("set-cookie")
    parts = {part.strip().lower() for part in cookie.split(";")[1:]}
    assert {"httponly", "samesite=strict", "path=/"} <= parts
    assert "secure" not in parts
    assert 28_000 < int(next(part.partition("=")[2] for part in parts if part.startswith("max-age="))) <= 28_800
    assert visitor.secret.startswith("fss_")
    assert visitor.secret not in visitor.page("/inbox")
    assert lead.token not in cookie


@pytest.mark.parametrize("proto", ["http", "https"])
def test_beyond_loopback_the_cookie_is_for_https_only(database: Database, lead: Person, proto: str) -> None:
    """Also behind a proxy that speaks plain HTTP to the desk; its name makes browsers insist."""
    with served(application(database.url(), {}, loopback=False)) as url:
        response = httpx.post(
            f"{url}/sign-in", data={"token": lead.token}, headers={"x-forwarded-proto": proto}, follow_redirects=False
        )
    [cookie] = response.headers.get_list("set-cookie")
    assert cookie.startswith("__Host-failsafe=")
    assert "secure" in {part.strip().lower() for part in cookie.split(";")}


def test_behind_a_proxy_with_tls_a_desk_on_loopback_guards_its_cookie_too(desk_url: str, lead: Person) -> None:
    """The proxy on this machine says that the browser came by HTTPS."""
    response = httpx.post(f"{desk_url}/sign-in", data={"token": lead.token}, headers={"x-forwarded-proto": "https"})
    assert "__Host-failsafe=" in response.headers["set-cookie"]


@pytest.mark.parametrize("path", ["/sign-in", "/inbox", "/nowhere", "/static/desk.css", "/v1/openapi.json", "/cases"])
def test_every_answer_carries_the_headers(visitor: Visitor, path: str) -> None:
    """Nothing runs, nothing frames, nothing is kept, nobody is told."""
    headers = visitor.get(path).headers
    assert headers["content-security-policy"] == CONTENT_SECURITY_POLICY
    assert CONTENT_SECURITY_POLICY.startswith("default-src 'none';")
    assert "script-src" not in CONTENT_SECURITY_POLICY
    assert "unsafe" not in CONTENT_SECURITY_POLICY
    assert "frame-ancestors 'none'" in CONTENT_SECURITY_POLICY
    assert headers["x-frame-options"] == "DENY"
    assert headers["referrer-policy"] == "same-origin"
    assert headers["cache-control"] == "no-store"
    assert headers["x-content-type-options"] == "nosniff"


def test_a_wrong_token_is_refused_after_a_delay(visitor: Visitor, lead: Person, superuser: Superuser) -> None:
    """Unknown or disabled, the answer is the same, and it takes its time."""
    began = time.monotonic()
    unknown = visitor.client.post("/sign-in", data={"token": "fst_unknown"})
    assert time.monotonic() - began >= 0.5
    superuser.run("select disable_principal('lead')")
    disabled = visitor.sign_in(lead)
    assert unknown.status_code == disabled.status_code == 401
    assert unknown.text == disabled.text
    assert "set-cookie" not in unknown.headers
    assert "fst_unknown" not in unknown.text


def test_after_ten_failures_one_waits(visitor: Visitor, lead: Person) -> None:
    """The eleventh try is not even looked at, a good token included, and the answer says for how long."""
    visitor.client.timeout = httpx.Timeout(60)
    for _ in range(FAILURES):
        assert visitor.client.post("/sign-in", data={"token": "fst_guess"}).status_code == 401
    limited = visitor.sign_in(lead)
    assert limited.status_code == 429
    assert 0 < int(limited.headers["retry-after"]) <= WINDOW
    assert "set-cookie" not in limited.headers


def test_the_limit_forgets() -> None:
    """Failures count for a minute, each address for itself, and a flood of addresses fills no memory."""
    now = 0.0
    limit = SignInLimit(lambda: now)
    for _ in range(FAILURES):
        assert limit.wait("a") == 0
        limit.failed("a")
    assert limit.wait("a") == WINDOW
    assert limit.wait("b") == 0
    now = WINDOW - 1
    assert limit.wait("a") == 1
    now = WINDOW
    assert limit.wait("a") == 0
    for number in range(MAX_ADDRESSES + 5):
        limit.failed(str(number))
    assert len(limit._failures) == MAX_ADDRESSES  # noqa: SLF001


def test_a_service_does_not_sign_in(visitor: Visitor, superuser: Superuser) -> None:
    """Its token is good, but it is told that only people decide; no session is left behind."""
    service = superuser.person("robot", ["support_lead"], kind="service")
    response = visitor.sign_in(service)
    assert response.status_code == 403
    assert "only people decide" in response.text
    assert "set-cookie" not in response.headers
    assert superuser.value("select count(*) from sessions") == 0


def test_signing_out_ends_the_session_everywhere(visitor: Visitor, lead: Person, superuser: Superuser) -> None:
    """A copy of the cookie is worth nothing afterwards."""
    visitor.sign_in(lead)
    secret = visitor.secret
    assert visitor.client.post("/sign-out", data={"csrf": "0" * 64}).status_code == 403
    assert superuser.value("select count(*) from sessions") == 1
    assert visitor.post("/sign-out").headers["location"] == "/sign-in"
    assert "failsafe" not in visitor.client.cookies
    assert superuser.value("select count(*) from sessions") == 0
    copied = httpx.get(f"{visitor.client.base_url}/inbox", cookies={"failsafe": secret})
    assert copied.headers["location"].startswith("/sign-in")


def test_after_signing_in_one_is_where_one_wanted_to_be(visitor: Visitor, lead: Person, asked: AskedRequest) -> None:
    """A page of the desk, never another site."""
    path = f"/approvals/{asked.approval_id}"
    sent = visitor.get(path)
    assert sent.headers["location"] == f"/sign-in?next={path.replace('/', '%2F')}"
    assert f'name="next" value="{path}"' in visitor.page(sent.headers["location"])
    came = visitor.client.post("/sign-in", data={"token": lead.token, "next": path})
    assert came.headers["location"] == path
    for elsewhere in (
        "//evil.example",
        "https://evil.example",
        "/\\evil.example",
        "/a\r\nset-cookie: x=1",
        "javascript:1",
    ):
        came = visitor.client.post("/sign-in", data={"token": lead.token, "next": elsewhere})
        assert came.headers["location"] == "/inbox"


def test_an_expired_session_says_so(visitor: Visitor, lead: Person, asked: AskedRequest, superuser: Superuser) -> None:
    """A page leads to the sign-in; a vote is not taken, and that is said."""
    visitor.sign_in(lead)
    token = csrf_token(visitor.secret)
    superuser.run(
        "update sessions set created_at = created_at - interval '9 hours', expires_at = expires_at - interval '9 hours'"
    )
    late = visitor.vote(asked, "approve", csrf=token)
    assert late.status_code == 401
    assert "nothing was done" in late.text
    assert superuser.value("select count(*) from approval_votes") == 0
    assert visitor.get("/inbox").headers["location"].startswith("/sign-in")


def test_a_disabled_person_is_out_at_once(visitor: Visitor, lead: Person, superuser: Superuser) -> None:
    """Their next page is the sign-in."""
    visitor.sign_in(lead)
    visitor.page("/inbox")
    superuser.run("select disable_principal('lead')")
    assert visitor.get("/inbox").headers["location"].startswith("/sign-in")


def test_a_form_without_the_sessions_token_does_nothing(
    visitor: Visitor, lead: Person, asked: AskedRequest, superuser: Superuser
) -> None:
    """Missing, wrong, another session's, given twice, or sent by another site."""
    visitor.sign_in(lead)
    other = csrf_token("fss_another")
    for csrf in ("", "x", other, [csrf_token(visitor.secret)] * 2):
        assert visitor.vote(asked, "approve", csrf=csrf).status_code == 403  # type: ignore[arg-type]
    missing = visitor.client.post(f"/approvals/{asked.approval_id}/vote", data={"vote": "approve"})
    assert missing.status_code == 403
    elsewhere = visitor.client.post(
        f"/approvals/{asked.approval_id}/vote",
        data={"csrf": csrf_token(visitor.secret)},
        headers={"origin": "https://evil.example"},
    )
    assert elsewhere.status_code == 403
    signing = visitor.client.post("/sign-in", data={"token": lead.token}, headers={"origin": "https://evil.example"})
    assert (signing.status_code, "set-cookie" in signing.headers) == (403, False)
    assert superuser.value("select count(*) from approval_votes") == 0


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"a=" + b"x" * 70_000, "application/x-www-form-urlencoded"),
        (b"&".join([b"a=1"] * 600), "application/x-www-form-urlencoded"),
        (b"a=%ff%fe", "application/x-www-form-urlencoded"),
        (b"a=\xff", "application/x-www-form-urlencoded"),
        (b"{}", "application/json"),
    ],
)
def test_a_form_out_of_bounds_is_refused(visitor: Visitor, lead: Person, body: bytes, kind: str) -> None:
    """Too large, too many fields, not UTF-8, no form: said, and no more of it is read."""
    visitor.sign_in(lead)
    response = visitor.client.post("/cases/plan", content=body, headers={"content-type": kind})
    assert response.status_code == 422
