"""A sandbox provider in a process of its own, as the demo runs it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

ROOT = Path(__file__).parents[2]
TOKENS = {
    "SANDBOX_BUDGET_TOKEN": "budget-token",
    "SANDBOX_EXPENSE_TOKEN": "expense-token",
    "SANDBOX_NOTIFY_TOKEN": "notify-token",
    "SANDBOX_ADMIN_TOKEN": "admin-token",
}
REIMBURSE = "/expense/reimburse"
SERVICE_TOKEN = {
    "/budget/reserve": "budget-token",
    "/budget/release": "budget-token",
    REIMBURSE: "expense-token",
    "/employee/notify": "notify-token",
}
BODY = {"employee_id": "E-101", "amount": {"minor": 4820, "currency": "MYR"}}


class Sandbox:
    """A running provider, spoken to over HTTP only."""

    def __init__(self, ledger: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._ledger = ledger
        self._client = httpx.Client(base_url=self.url, trust_env=False, timeout=10)
        self.start()

    def start(self) -> None:
        """Start the process and wait until it answers."""
        command = [sys.executable, "-m", "examples.expenses.sandbox_provider"]
        self._process = subprocess.Popen(
            [*command, "--port", str(self.port), "--ledger", str(self._ledger)], cwd=ROOT, env={**os.environ, **TOKENS}
        )
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            try:
                self._client.get("/")
            except httpx.TransportError:
                time.sleep(0.02)
            else:
                return
        raise TimeoutError("the sandbox provider did not start within 20 s")

    def kill(self) -> None:
        """End it as a power switch would."""
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """End process and connections."""
        self.kill()
        self._client.close()

    def post(self, key: str, path: str = REIMBURSE, token: str = "", **changed: Any) -> httpx.Response:
        """Ask for an effect under `key`, by default with the right token."""
        headers = {"Authorization": f"Bearer {token or SERVICE_TOKEN[path]}", "Idempotency-Key": key}
        return self._client.post(path, json={**BODY, **changed}, headers=headers)

    def find(self, key: str, token: str = "expense-token") -> httpx.Response:
        """Look an effect up by its key."""
        return self._client.get(f"/effects/{key}", headers={"Authorization": f"Bearer {token}"})

    def faults(self, **named: Any) -> None:
        """Make it misbehave."""
        assert self.put_faults(named).status_code == 204

    def put_faults(self, document: dict[str, Any]) -> httpx.Response:
        """What it says to a description of faults."""
        return self._client.put("/faults", json=document, headers={"Authorization": "Bearer admin-token"})

    def ledger(self, token: str = "admin-token") -> dict[str, Any]:
        """What really happened."""
        answer: dict[str, Any] = self._client.get("/ledger", headers={"Authorization": f"Bearer {token}"}).json()
        return answer

    def effects(self, key: str) -> int:
        """How many effects were made under `key`."""
        return sum(row["key"] == key for row in self.ledger()["rows"])


@pytest.fixture(scope="session")
def running_sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """One provider for all tests; each uses keys of its own."""
    provider = Sandbox(tmp_path_factory.mktemp("sandbox") / "ledger.db")
    yield provider
    provider.close()


@pytest.fixture
def sandbox(running_sandbox: Sandbox) -> Iterator[Sandbox]:
    """The provider without faults, before and after."""
    yield running_sandbox
    running_sandbox.faults()
