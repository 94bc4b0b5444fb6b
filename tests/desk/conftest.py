"""A desk that is really served: uvicorn on loopback, on a database of the test's own."""

from __future__ import annotations

import json
import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
import uvicorn
from playwright.sync_api import Browser, Page, sync_playwright
from starlette.types import ASGIApp

from console.desk.application import application
from console.desk.csrf import csrf_token
from tests.console.test_review import document
from tests.desk.browsing import CHROMIUM, FLAGS
from tests.postgres import Database
from tests.store.released import Worker
from tests.store.requests import AskedRequest, Person, Superuser
from tests.store.workflow import refunds


@contextmanager
def served(app: ASGIApp) -> Iterator[str]:
    """The URL at which an application is served while the block runs."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="critical", lifespan="off", ws="none"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    server.should_exit = True
    thread.join(10)
    listener.close()


@dataclass
class Visitor:
    """A browser without a window: keeps cookies, follows nothing by itself."""

    client: httpx.Client

    def sign_in(self, person: Person) -> httpx.Response:
        """Hand the token in."""
        return self.client.post("/sign-in", data={"token": person.token})

    @property
    def secret(self) -> str:
        """The session secret in the cookie."""
        return self.client.cookies["failsafe"]

    def get(self, path: str, **query: str) -> httpx.Response:
        """Open a page."""
        return self.client.get(path, params=query or None)

    def page(self, path: str, **query: str) -> str:
        """The text of a page that is there."""
        response = self.get(path, **query)
        assert response.status_code == 200, response.text
        return response.text

    def post(self, path: str, **fields: Any) -> httpx.Response:
        """Send a form with the session's own CSRF token, unless the test gives another."""
        return self.client.post(path, data={"csrf": csrf_token(self.secret), **fields})

    def vote(self, asked: AskedRequest, vote: str, reason: str = "", **changed: str) -> httpx.Response:
        """Send the form of the proposal page."""
        fields = {
            "vote": vote,
            "reason": reason,
            "proposal_hash": asked.proposal_hash.hex(),
            "review_hash": asked.review_hash.hex(),
            **changed,
        }
        return self.post(f"/approvals/{asked.approval_id}/vote", **fields)


@pytest.fixture
def worker(database: Database) -> Iterator[Worker]:
    """Who starts effects, on this test's database."""
    worker = Worker(database)
    yield worker
    worker.superuser.engine.dispose()


@pytest.fixture
def superuser(worker: Worker) -> Superuser:
    """A writer that no duty binds, on this test's database."""
    return worker.superuser


@pytest.fixture
def desk_url(database: Database) -> Iterator[str]:
    """The desk's URL; its API takes refunds."""
    with served(application(database.url(), {"refunds": refunds}, loopback=True)) as url:
        yield url


@pytest.fixture
def visitor(desk_url: str) -> Iterator[Visitor]:
    """Somebody at the desk who has not signed in yet."""
    with httpx.Client(base_url=desk_url, timeout=30) as client:
        yield Visitor(client)


@pytest.fixture
def clerk(superuser: Superuser) -> Person:
    """Who submits; has the role to decide as well, which must not help."""
    return superuser.person("clerk", ["support_lead"])


@pytest.fixture
def lead(superuser: Superuser) -> Person:
    """Who may decide."""
    return superuser.person("lead", ["support_lead"])


@pytest.fixture
def operator(superuser: Superuser) -> Person:
    """Who sees to what went wrong."""
    return superuser.person("operator", ["operator"])


@pytest.fixture
def asked(superuser: Superuser, clerk: Person) -> AskedRequest:
    """A request that waits for a lead, with the document that a run would build."""
    return superuser.asked(clerk, document=json.loads(document()))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A headless chromium."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Browser, desk_url: str) -> Iterator[Page]:
    """A window of its own on the desk; whatever the browser refuses or complains of fails the test."""
    context = browser.new_context(base_url=desk_url)
    context.set_default_timeout(20_000)
    page = context.new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text if message.type in {"error", "warning"} else ""))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    yield page
    context.close()
    assert [one for one in complaints if one and "Failed to load resource" not in one] == []


def field(page: str, name: str) -> str:
    """The value of a hidden field of a page."""
    found = re.search(rf'name="{name}" value="([^"]*)"', page)
    assert found, f"no field {name}"
    return found[1]
