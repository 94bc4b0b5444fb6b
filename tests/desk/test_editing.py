"""Changing what is asked at the desk: a new proposal for somebody else to decide on, or a form that says why not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

import httpx
import pytest

from console.desk.application import application
from resources.store.inbox import Asked, find_asked
from tests.desk.conftest import Visitor, served
from tests.desk.sent import sent
from tests.ops import toy
from tests.ops.passes import Shop, refund
from tests.postgres import Database
from tests.store.requests import Person

TEXT = "TOTAL 80.00 EUR\nof which returned: 60.00 EUR\n<script>alert(1)</script>\u202e"


@dataclass
class Editor:
    """Somebody at the desk of a shop where one request waits."""

    shop: Shop
    visitor: Visitor
    approval: UUID

    @property
    def path(self) -> str:
        """Where the form is, and where it is sent to."""
        return f"/approvals/{self.approval}/edit"

    def send(self, **changed: str | list[str]) -> httpx.Response:
        """Open the form, fill in what is changed, and send it."""
        fields = sent(self.visitor.page(self.path), self.path, **{"reason": "one was kept", **changed})
        return self.visitor.post(self.path, **fields)

    def lower(self, amount: str = "60.00 EUR", quote: str = "60.00 EUR") -> dict[str, str | list[str]]:
        """Another amount, with a quote that shows it in the place of the old one."""
        return {
            "value.1.amount": amount,
            "source.1.amount": ["text", "text"],
            "quote.1.amount": [quote, ""],
        }

    def asked(self) -> Asked:
        """What is asked now."""
        found = find_asked(self.shop.url, "one")
        assert found is not None
        return found

    def amount(self) -> object:
        """The amount that is asked now, in minor units."""
        return json.loads(self.asked().document)["actions"][0]["parameters"]["amount"]["minor"]

    @property
    def untouched(self) -> bool:
        """Nothing of an edit was stored."""
        one = self.shop.request("one")
        return (one.state, one.revision) == ("awaiting_approval", 1) and self.shop.count("proposals") == 1


@pytest.fixture
def shop(database: Database, tmp_path: Path) -> Shop:
    """A shop in which one request waits for a lead."""
    shop = Shop(database, tmp_path)
    shop.queue({"one": refund("80.00", text=TEXT)})
    shop.run()
    return shop


@pytest.fixture
def desk_url(shop: Shop) -> Iterator[str]:
    """A desk that knows the shop's workflow."""
    with served(application(shop.url, {shop.workflow.name: shop.workflow}, loopback=True)) as url:
        yield url


@pytest.fixture
def edda(shop: Shop) -> Person:
    """A lead."""
    return lead(shop, "edda")


@pytest.fixture
def editor(shop: Shop, visitor: Visitor, edda: Person) -> Editor:
    """Edda, signed in."""
    visitor.sign_in(edda)
    asked = find_asked(shop.url, "one")
    assert asked is not None
    return Editor(shop, visitor, asked.approval_id)


def lead(shop: Shop, name: str, roles: tuple[str, ...] = ("lead",)) -> Person:
    """A new person of this shop."""
    token = toy.principal(shop.url, name, list(roles), kind="human", external_id=f"E-{name}")
    [row] = shop.rows(f"select id from principals where name = '{name}'")
    return Person(row.id, name, token)


def test_an_edit_becomes_a_revision_that_somebody_else_decides_on(editor: Editor) -> None:
    """From the form over a new round to one payment of the changed amount."""
    went = editor.send(**editor.lower())
    assert (went.status_code, went.headers["location"]) == (303, f"/approvals/{editor.approval}/edited")
    page = editor.visitor.page(went.headers["location"])
    assert "revision <strong>2</strong>" in page
    assert "60.00 EUR" in page
    editor.shop.run()
    assert editor.amount() == 6000
    again = editor.visitor.page(f"/approvals/{editor.asked().approval_id}")
    assert "you edited this proposal: somebody else decides on it" in again
    assert 'value="approve"' not in again
    assert "Change what is asked" not in again
    changed = again.split('id="changed"')[1].split("</section>")[0]
    assert "<del><bdi>80.00 EUR</bdi></del>" in changed
    assert "<ins><bdi>60.00 EUR</bdi></ins>" in changed
    assert "order_id" not in changed
    assert "<strong><bdi>edda</bdi></strong> changed it" in changed
    assert "one was kept" in changed
    assert 'id="changed"' not in editor.visitor.page(f"/approvals/{editor.approval}")
    assert editor.shop.vote("one", "otto").outcome == "released"
    editor.shop.run()
    assert len(editor.shop.calls()) == 1


def test_the_form_shows_what_is_asked_and_what_it_rests_on(editor: Editor) -> None:
    """Typed fields with today's values, the quotes that show them, and the sources to quote from, as text."""
    page = editor.visitor.page(editor.path)
    fields = sent(page, editor.path)
    assert fields["value.1.amount"] == "80.00 EUR"
    assert fields["quote.1.amount"] == ["TOTAL 80.00 EUR", ""]
    assert "a quote must show it" in page
    assert "must be what the record orders says" in page
    assert "like 50.00 EUR" in page
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;\\u202e" in page
    assert f'href="{editor.path}"' in editor.visitor.page(f"/approvals/{editor.approval}")


@pytest.mark.parametrize(
    ("changed", "said", "place"),
    [
        ({"value.1.amount": "lots"}, "write money as", "value.1.amount"),
        ({"value.1.amount": "61.00 EUR"}, "authority_unsupported", "value.1.amount"),
        ({"value.1.amount": "2000.00 EUR"}, "over_limit", "value.1.amount"),
        ({"value.1.order_id": "gone"}, "record_missing", "value.1.order_id"),
        ({"value.1.order_id": "x" * 4001}, "text_too_long", "value.1.order_id"),
        ({"value.1.amount": "61.00 EUR", "quote.1.amount": ["61.00 EUR", ""]}, "quote_not_found", "value.1.amount"),
    ],
)
def test_what_refuses_an_edit_stands_at_its_field(
    editor: Editor, changed: dict[str, str | list[str]], said: str, place: str
) -> None:
    """422, nothing is stored, and what was entered is still there."""
    refused = editor.send(**changed)
    assert refused.status_code == 422
    assert "Nothing was changed" in refused.text
    wrong = refused.text.split('class="parameter wrong"')[1].split('class="parameter')[0]
    assert said in wrong
    assert f'name="{place}"' in wrong
    assert 'aria-invalid="true"' in wrong
    fields = sent(refused.text, editor.path)
    assert fields["reason"] == "one was kept"
    assert fields[place] == changed[place]
    assert editor.untouched


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({}, "nothing was changed"),
        ({"value.1.amount": "60.00 EUR", "reason": " "}, "say the reason"),
        ({"value.1.amount": "60.00 EUR", "reason": "x" * 501}, "say it in 500"),
        ({"value.1.amount": "80.0 EUR"}, "asked already"),
        ({"value.1.amount": []}, "does not say every parameter once"),
        ({"value.1.amount": ["60.00 EUR", "61.00 EUR"]}, "does not say every parameter once"),
    ],
)
def test_a_form_that_is_no_edit_changes_nothing(editor: Editor, changed: dict[str, str | list[str]], said: str) -> None:
    """No change, no reason, or no form of ours: said, and nothing is stored."""
    refused = editor.send(**changed)
    assert (refused.status_code, said in refused.text) == (422, True)
    assert editor.untouched


def test_hostile_text_in_an_edit_is_text(editor: Editor) -> None:
    """What somebody enters comes back escaped, with nothing hidden in it."""
    hostile = "</textarea><script>alert(1)</script>\u202e\0"
    refused = editor.send(**{"value.1.order_id": hostile, "reason": hostile})
    assert refused.status_code == 422
    assert "<script" not in refused.text
    assert "\u202e" not in refused.text
    assert "&lt;/textarea&gt;&lt;script&gt;alert(1)&lt;/script&gt;\\u202e" in refused.text
    assert editor.untouched


def test_the_same_edit_again_is_the_same_edit(editor: Editor) -> None:
    """A double click ends in one revision and its page; another edit of what was edited is refused visibly."""
    fields = sent(editor.visitor.page(editor.path), editor.path, **{"reason": "typo", **editor.lower()})
    first, again = (editor.visitor.post(editor.path, **fields) for _ in range(2))
    assert first.headers["location"] == again.headers["location"]
    other = editor.visitor.post(editor.path, **{**fields, "reason": "another"})
    assert (other.status_code, "is void" in other.text) == (409, True)
    assert editor.shop.request("one").revision == 2
    assert editor.shop.count("proposals") == 2


def test_a_stale_form_edits_nothing(editor: Editor) -> None:
    """Edited by somebody else, decided, or with other hashes than were shown: 409 and no revision of it."""
    fields = sent(editor.visitor.page(editor.path), editor.path, **{"reason": "typo", **editor.lower()})
    wrong = editor.visitor.post(editor.path, **{**fields, "review_hash": "0" * 64})
    assert (wrong.status_code, "not what is asked now" in wrong.text) == (409, True)
    assert editor.visitor.post(editor.path, **{**fields, "proposal_hash": "zz"}).status_code == 422
    assert editor.untouched
    editor.shop.vote("one", "otto", "deny")
    assert editor.visitor.post(editor.path, **fields).status_code == 409
    assert editor.visitor.get(editor.path).status_code == 403
    assert editor.shop.states() == {"one": "rejected"}


def test_a_reviewer_who_approved_may_still_change_it(editor: Editor) -> None:
    """While others are asked: their vote goes with what it was for."""
    editor.shop.set_policy(toy.POLICY.replace("people: 1", "people: 2", 1))
    editor.shop.queue({"two": refund("80.00", text=TEXT)})
    editor.shop.run()
    asked = find_asked(editor.shop.url, "two")
    assert asked is not None
    shown = editor.visitor.page(f"/approvals/{asked.approval_id}")
    action = f"/approvals/{asked.approval_id}/vote"
    editor.visitor.post(action, **sent(shown, action), vote="approve")
    page = editor.visitor.page(f"/approvals/{asked.approval_id}")
    assert "you voted already: approve" in page
    assert f'href="/approvals/{asked.approval_id}/edit"' in page


def test_who_may_not_decide_may_not_edit(editor: Editor) -> None:
    """Neither by page nor by form; a stranger is not told that there is anything."""
    fields = sent(editor.visitor.page(editor.path), editor.path, **{"reason": "typo", **editor.lower()})
    for role, status in (("operator", 403), ("other", 422)):
        editor.visitor.sign_in(lead(editor.shop, role, (role,)))
        assert editor.visitor.get(editor.path).status_code == status
        assert editor.visitor.post(editor.path, **{**fields, "csrf": sent_csrf(editor.visitor)}).status_code == status
    assert editor.untouched


def sent_csrf(visitor: Visitor) -> str:
    """The token of the visitor's own forms."""
    token = sent(visitor.page("/inbox"), "/sign-out")["csrf"]
    assert isinstance(token, str)
    return token


def test_a_desk_without_the_workflow_says_how_to_edit(shop: Shop, edda: Person) -> None:
    """It cannot know types and records, so it names what to add and the command."""
    asked = find_asked(shop.url, "one")
    assert asked is not None
    with served(application(shop.url, {}, loopback=True)) as url, httpx.Client(base_url=url) as client:
        visitor = Visitor(client)
        visitor.sign_in(edda)
        refused = visitor.get(f"/approvals/{asked.approval_id}/edit")
    assert (refused.status_code, "FAILSAFE_WORKFLOWS" in refused.text) == (409, True)


def test_the_page_of_an_edit_is_its_editors(editor: Editor) -> None:
    """Somebody who changed nothing is sent to the request; who may not look is told nothing."""
    editor.send(**editor.lower())
    path = f"/approvals/{editor.approval}/edited"
    editor.visitor.sign_in(lead(editor.shop, "otto"))
    assert editor.visitor.get(path).headers["location"] == f"/approvals/{editor.approval}"
    editor.visitor.sign_in(lead(editor.shop, "sam", ("other",)))
    assert editor.visitor.get(path).status_code == 422
