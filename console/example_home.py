"""A Dagster home of its own, on the embedded server, for trying the example: one for the demo, another for `dev`."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import sys
import time
from importlib import import_module
from pathlib import Path
from types import ModuleType

from console.process_group import ProcessGroups
from policies.errors import DefinitionError, StoreUnavailable
from resources.database_url import ensure_database
from resources.store.migrate import upgrade
from resources.store.principals import Kind, create_principal

REPOSITORY = Path(__file__).resolve().parent.parent

REVIEWERS = (("Tess (team lead)", ["team_lead"]), ("Finn (finance)", ["team_lead", "finance"]))
"""People of the example who decide; none of them hands receipts in."""


class ExampleHome:
    """Folder, databases, principals and environment of one way to try the example."""

    def __init__(self, name: str, *, lease_seconds: int) -> None:
        self.folder = Path.cwd() / ".failsafe" / name
        self._lease_seconds = lease_seconds
        self.environment: dict[str, str] = {}
        self.database_url = ""

    def start(self, *, afresh: bool) -> None:
        """Bring the databases up and set the environment; `afresh` forgets what an earlier try left.

        Raises:
            StoreUnavailable: the extra `embedded` is not installed, or the server does not start.
        """
        from resources.embedded_postgres import EmbeddedPostgres

        server = EmbeddedPostgres(self.folder / "server")
        if afresh and self.folder.exists():
            server.remove()
            shutil.rmtree(self.folder)
        (self.folder / "logs").mkdir(parents=True, exist_ok=True)
        self.server = server
        server.start()
        for database in ("failsafe", "dagster"):
            ensure_database(server.url(), database)
        self.database_url = server.url(database="failsafe")
        upgrade(self.database_url)
        shutil.copy(REPOSITORY / "dagster.yaml", self.folder / "dagster.yaml")
        self._set_environment(server.url(database="dagster", driver="psycopg2"))

    def stop(self) -> None:
        """Shut the databases down; what they hold stays."""
        self.server.stop()

    def principal(self, name: str, kind: Kind, roles: list[str]) -> str:
        """The token of a principal of the example, made at its first use and kept in a file only we can read."""
        kept = self.folder / f"{name.partition(' ')[0].lower()}.token"
        if not kept.exists():
            token = create_principal(self.database_url, kind=kind, name=name, roles=roles).token
            kept.touch(mode=0o600)
            kept.write_text(token)
        return kept.read_text()

    def groups(self) -> ProcessGroups:
        """Children with this home's environment and logs."""
        return ProcessGroups(self.environment, self.folder / "logs")

    def start_provider(self, children: ProcessGroups) -> None:
        """Start the sandbox provider on loopback and wait until it answers."""
        port = self.environment["SANDBOX_URL"].rpartition(":")[2]
        ledger = str(self.folder / "provider.sqlite")
        module = "examples.expenses.sandbox_provider"
        child = children.start("provider", [sys.executable, "-m", module, "--port", port, "--ledger", ledger])
        give_up = time.monotonic() + 30
        while time.monotonic() < give_up and child.poll() is None:
            with socket.socket() as probe:
                probe.settimeout(0.2)
                if probe.connect_ex(("127.0.0.1", int(port))) == 0:
                    return
        raise StoreUnavailable(f"the sandbox provider did not start; read {self.folder / 'logs' / 'provider.log'}")

    def _set_environment(self, dagster_url: str) -> None:
        intake = self.principal("Expense intake", "service", ["expense_intake"])
        self.environment = os.environ | {
            "DAGSTER_HOME": str(self.folder),
            "DAGSTER_PG_URL": dagster_url,
            "DAGSTER_DISABLE_TELEMETRY": "1",
            "FAILSAFE_DATABASE_URL": self.database_url,
            "FAILSAFE_LEASE_SECONDS": str(self._lease_seconds),
            "FAILSAFE_BACKOFF_SECONDS": "2",  # who watches does not want to wait half a minute
            "FAILSAFE_WORKFLOWS": "examples.expenses.workflow",
            "EXPENSES_INTAKE_TOKEN": intake,
            "SANDBOX_URL": f"http://127.0.0.1:{_free_port()}",
            "PYTHONPATH": os.pathsep.join(filter(None, (str(REPOSITORY), os.environ.get("PYTHONPATH")))),
        }
        for secret in ("BUDGET", "EXPENSE", "NOTIFY", "ADMIN"):
            self.environment[f"SANDBOX_{secret}_TOKEN"] = secrets.token_urlsafe(24)
        os.environ.update(self.environment)


def example_module(name: str) -> ModuleType:
    """A module of the expenses example, which stands in the repository and not in the installed package.

    Raises:
        DefinitionError: this is no checkout of the repository.
    """
    if str(REPOSITORY) not in sys.path:
        sys.path.insert(0, str(REPOSITORY))
    try:
        return import_module(f"examples.expenses.{name}")
    except ModuleNotFoundError as error:
        raise DefinitionError(
            f"the example is part of the repository, not of the installed package: run this in a checkout ({error})"
        ) from None


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
