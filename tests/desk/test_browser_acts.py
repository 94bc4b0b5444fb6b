"""What people do beside voting, in a real browser: change, withdraw, lend, pause."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from console.desk.application import application
from tests.desk.browsing import NEEDS_CHROMIUM, looked_at, sign_in
from tests.desk.conftest import served
from tests.desk.test_editing import TEXT
from tests.desk.test_editing import lead as lead_of
from tests.desk.work import late_effect
from tests.ops.passes import Shop, refund
from tests.postgres import Database
from tests.store.released import Worker
from tests.store.requests import AskedRequest, Person, Superuser

pytestmark = NEEDS_CHROMIUM

UNTIL = datetime.now(UTC) + timedelta(days=3)


@pytest.fixture
def shop(database: Database, tmp_path: Path) -> Shop:
    """A shop in which a request of three actions waits for a lead."""
    shop = Shop(database, tmp_path)
    shop.queue({"one": refund("80.00", text=TEXT, say="saga")})
    shop.run()
    return shop


@pytest.fixture
def shop_url(shop: Shop) -> Iterator[str]:
    """A desk that knows the shop's workflow."""
    with served(application(shop.url, {shop.workflow.name: shop.workflow}, loopback=True)) as url:
        yield url


@pytest.mark.parametrize("scripts", [True, False], ids=["javascript", "no-javascript"])
def test_a_reviewer_changes_what_is_asked(browser: Browser, shop: Shop, shop_url: str, scripts: bool) -> None:
    """Wrong at first, said at the field; then a new revision that somebody else decides on; a double click is one."""
    edda, otto = lead_of(shop, "edda"), lead_of(shop, "otto")
    context = browser.new_context(base_url=shop_url, java_script_enabled=scripts)
    context.set_default_timeout(20_000)
    page = context.new_page()
    sign_in(page, edda)
    page.get_by_role("link", name="one", exact=True).click()
    page.get_by_role("link", name="Change what is asked").click()
    looked_at(page, "edit")
    page.get_by_label("amount", exact=True).fill("60.00 EUR")
    page.get_by_label("Reason").fill("one was kept")
    page.get_by_role("button", name="Propose this instead").click()
    assert "Nothing was changed" in page.get_by_role("alert").inner_text()
    looked_at(page, "edit-refused")
    wrong = page.locator(".parameter.wrong")
    assert wrong.count() == 1
    assert "authority_unsupported" in wrong.inner_text()
    wrong.get_by_label("word for word").first.fill("60.00 EUR")
    wrong.get_by_label("from").first.select_option("text")
    page.get_by_role("button", name="Propose this instead").dblclick(no_wait_after=True)
    page.wait_for_url("**/edited")
    looked_at(page, "edited")
    assert "revision 2" in page.get_by_role("status").inner_text()
    shop.run()
    page.get_by_role("link", name="the request", exact=True).click()
    assert "you edited this proposal" in page.locator("#decide").inner_text()
    page.get_by_role("button", name="Sign out").click()
    sign_in(page, otto)
    page.get_by_role("link", name="one", exact=True).click()
    looked_at(page, "proposal-edited")
    page.get_by_role("button", name="Approve exactly this").click()
    page.wait_for_url("**/vote")
    assert shop.states() == {"one": "executing"}
    assert shop.count("proposals") == 2
    context.close()


def test_an_edit_by_keyboard_alone(browser: Browser, shop: Shop, shop_url: str) -> None:
    """From the link over the field and its quote to the button; every stop is visible."""
    context = browser.new_context(base_url=shop_url)
    context.set_default_timeout(20_000)
    page = context.new_page()
    sign_in(page, lead_of(shop, "edda"))
    page.get_by_role("link", name="one", exact=True).focus()
    page.keyboard.press("Enter")
    page.get_by_role("link", name="Change what is asked").focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/edit")

    def tab_to(wanted: str) -> None:
        for _ in range(60):
            page.keyboard.press("Tab")
            assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
            if page.evaluate("document.activeElement.name || document.activeElement.textContent") == wanted:
                return
        pytest.fail(f"no way to {wanted}")

    tab_to("value.2.amount")
    page.keyboard.press("Control+a")
    page.keyboard.type("60.00 EUR")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")  # opens the quotes
    tab_to("quote.2.amount")
    page.keyboard.press("Control+a")
    page.keyboard.type("60.00 EUR")
    tab_to("reason")
    page.keyboard.type("one was kept")
    tab_to("Propose this instead")
    page.keyboard.press("Enter")
    page.wait_for_url("**/edited")
    assert shop.request("one").revision == 2
    context.close()


def test_a_request_is_withdrawn(page: Page, asked: AskedRequest, clerk: Person, superuser: Superuser) -> None:
    """By whoever submitted it, after reading what that comes to; a double click is one cancellation."""
    sign_in(page, clerk)
    page.goto(f"/requests/{asked.id}")
    page.get_by_role("link", name="Withdraw this request").click()
    looked_at(page, "cancel")
    page.get_by_label("Reason").fill("sent by mistake")
    page.get_by_role("button", name="Cancel this request").dblclick(no_wait_after=True)
    page.get_by_role("status").wait_for()
    looked_at(page, "cancelled")
    assert "It is cancelled" in page.get_by_role("status").inner_text()
    assert superuser.value("select count(*) from audit_v where type = 'request.cancelled'") == 1


def test_a_role_is_lent_and_taken_back(page: Page, lead: Person, superuser: Superuser) -> None:
    """For a time with its zone; a double click is one loan."""
    superuser.person("deputy <b>")
    sign_in(page, lead)
    page.get_by_role("link", name="Delegations").click()
    looked_at(page, "delegations-empty")
    page.get_by_label("To (a person's name)").fill("nobody")
    page.get_by_label("Until").fill(f"{UNTIL:%Y-%m-%dT%H:%M}")
    page.get_by_label("Reason").fill("on leave")
    page.get_by_role("button", name="Lend it").click()
    page.get_by_role("alert").wait_for()
    looked_at(page, "delegations-refused")
    page.get_by_label("To (a person's name)").fill("deputy <b>")
    page.get_by_role("button", name="Lend it").dblclick(no_wait_after=True)
    page.get_by_role("link", name="take back").wait_for()
    looked_at(page, "delegations")
    assert superuser.value("select count(*) from role_grants") == 1
    page.get_by_role("link", name="take back").click()
    looked_at(page, "take-back")
    page.get_by_role("button", name="Take it back").click()
    page.get_by_text("taken back 20").wait_for()
    assert superuser.value("select count(*) from role_grants where revoked_at is not null") == 1


def test_an_operator_pauses_and_resumes(page: Page, worker: Worker, operator: Person) -> None:
    """What it would hold back and comes too late for, the report, the list, and lifting it."""
    worker.superuser.run("insert into action_types values ('refunds', 'order.refund', 'Payments')")
    held, flying = worker.released(), worker.released()
    [started] = worker.start(flying, flying.start())
    sign_in(page, operator)
    page.get_by_role("link", name="Pauses").click()
    looked_at(page, "pauses-none")
    page.get_by_label("What").select_option("provider:Payments")
    page.get_by_role("button", name="What would a pause do?").click()
    looked_at(page, "pause-plan")
    page.get_by_label("Reason").fill("the provider answers nonsense")
    assert started.key in page.locator("main").inner_text()
    page.get_by_role("button", name="Pause provider Payments").click()
    page.get_by_role("status").wait_for()
    looked_at(page, "paused")
    assert worker.refusal(held) == "paused"
    page.get_by_role("link", name="To the pauses").click()
    looked_at(page, "pauses")
    page.get_by_role("link", name="resume").click()
    looked_at(page, "resume-plan")
    page.get_by_label("Reason").fill("it is back")
    page.get_by_role("button", name="Resume provider Payments").click()
    page.get_by_role("status").wait_for()
    looked_at(page, "resumed")
    assert worker.superuser.value("select count(*) from pauses") == 0


def test_what_only_a_person_can_tell_has_a_page(
    page: Page, superuser: Superuser, clerk: Person, operator: Person
) -> None:
    """In the list of cases, and with what to do about it."""
    request_id = superuser.received(clerk, "order-unclear")
    superuser.move(request_id, "review_needed", "needs_review")
    superuser.run(
        "update requests set reason = 'the model abstained: no amount is stated' where id = :id", id=request_id
    )
    sign_in(page, operator)
    page.get_by_role("link", name="Cases").click()
    looked_at(page, "cases-needs-review")
    page.get_by_role("link", name="order-unclear").click()
    looked_at(page, "account-needs-review")
    page.get_by_label("Reason").fill("sent anew as order-unclear-2")
    page.get_by_role("button", name="What would a discard do?").click()
    page.get_by_role("button", name="Discard 1").click()
    page.get_by_role("link", name="To the cases").wait_for()
    assert superuser.state(request_id) == "failed"


def test_what_came_late_is_undone(page: Page, worker: Worker, operator: Person) -> None:
    """The third answer there is about an effect; then it waits for a run."""
    key = late_effect(worker)
    sign_in(page, operator)
    page.goto(f"/cases/effect?key={key}")
    looked_at(page, "effect-late")
    page.get_by_label("It happened and must not stand").check()
    page.get_by_label("How you know").fill("the customer was paid twice")
    page.get_by_role("button", name="Record it").click()
    page.wait_for_url("**/timeline")
    page.goto("/cases")
    assert "undo" in page.get_by_role("region", name="Effects of which nobody knows").inner_text()
