"""What holds for every form of the desk, those to come included: nothing is taken that its own page did not send."""

from __future__ import annotations

import uuid

import httpx
import pytest

from console.desk.application import PAGES
from console.desk.csrf import csrf_token
from tests.desk.conftest import Visitor
from tests.store.requests import Person, Superuser

SOME = str(uuid.UUID(int=7))
FORMS = [
    path.replace("{approval:uuid}", SOME).replace("{request:uuid}", SOME).replace("{loan:uuid}", SOME)
    for method, path, _ in PAGES
    if method == "POST"
]
ALL = {"reason": "told so", "evidence": "ten characters", "vote": "approve", "act": "pause", "what": "everything:*"}


@pytest.fixture
def signed_in(visitor: Visitor, superuser: Superuser) -> Visitor:
    """Somebody who may do everything."""
    visitor.sign_in(superuser.person("everything", ["operator", "support_lead"]))
    return visitor


@pytest.mark.parametrize("path", FORMS)
def test_a_form_of_another_page_does_nothing(signed_in: Visitor, superuser: Superuser, path: str) -> None:
    """Without this session's token, or sent by another site: 403, and the ledger stays as it was."""
    before = superuser.value("select count(*) from audit_events")
    for csrf in ("", "x", csrf_token("fss_another")):
        refused = signed_in.post(path, csrf=csrf, **ALL)
        assert (refused.status_code, "nothing was done" in refused.text) == (403, True)
    for origin in ("https://evil.example", "null", f"{signed_in.client.base_url}.evil.example"):
        elsewhere = signed_in.client.post(
            path, data={"csrf": csrf_token(signed_in.secret), **ALL}, headers={"origin": origin}
        )
        assert (elsewhere.status_code, "another site" in elsewhere.text) == (403, True)
    assert superuser.value("select count(*) from audit_events") == before


@pytest.mark.parametrize("path", FORMS)
def test_a_form_after_the_session_does_nothing(visitor: Visitor, path: str) -> None:
    """401 and a way to sign in; no form is sent again by itself."""
    visitor.client.cookies.set("failsafe", "fss_over")
    late = visitor.post(path, **ALL)
    assert (late.status_code, "nothing was done" in late.text) == (401, True)


@pytest.mark.parametrize("path", FORMS)
def test_an_empty_form_is_said_to_be_one(signed_in: Visitor, path: str) -> None:
    """Never an error of ours."""
    assert signed_in.post(path).status_code in {409, 422}


@pytest.mark.parametrize(("method", "path"), [(method, path) for method, path, _ in PAGES])
def test_every_page_needs_a_session(desk_url: str, method: str, path: str) -> None:
    """Who is not signed in learns nothing, not even whether there is something."""
    for part in ("{approval:uuid}", "{request:uuid}", "{loan:uuid}"):
        path = path.replace(part, SOME)
    response = httpx.request(method, desk_url + path, data={"csrf": "x"} if method == "POST" else None)
    if method == "GET":
        assert response.status_code == 303
        assert response.headers["location"].startswith("/sign-in?next=")
    else:
        assert response.status_code == 401


def test_nul_in_a_query_is_no_error_of_ours(signed_in: Visitor, lead: Person) -> None:
    """It is left out, or nothing is found."""
    for path in ("/inbox?workflow=%00", "/find?name=a%00b", "/cases/effect?key=%00", "/bulk?approval=%00"):
        assert signed_in.get(path).status_code in {200, 422}
