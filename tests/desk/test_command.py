"""`failsafe desk` as a person starts it."""

from __future__ import annotations

import signal
import socket
import time
from pathlib import Path

import httpx

from tests.console.conftest import Terminal
from tests.postgres import Database


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


def test_it_serves_until_it_is_interrupted(database: Database, tmp_path: Path) -> None:
    """It says where it is, serves desk and API of the named workflows, and ends on Ctrl-C without a trace."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    child = Terminal(database.url(), tmp_path).start("desk", "--port", port)
    try:
        for _ in range(300):
            try:
                page = httpx.get(f"{url}/sign-in")
                break
            except httpx.TransportError:
                time.sleep(0.1)
        assert "Your token" in page.text
        assert "server" not in page.headers
        assert "refunds.submission" in httpx.get(f"{url}/v1/openapi.json").json()["components"]["schemas"]
    finally:
        child.send_signal(signal.SIGINT)
    said, complaints = child.communicate(timeout=30)
    assert url in said
    assert "refunds" in said
    assert "Traceback" not in complaints


def test_it_does_not_start_without_its_database(tmp_path: Path) -> None:
    """One line that says what to do."""
    result = Terminal("postgresql+psycopg://x:the-password@127.0.0.1:1/none", tmp_path).run("desk")
    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1
    assert "the-password" not in result.output
