"""Dagster as people run it, for as long as something is measured: web server, daemon and code server."""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx

from benchmarks.dagster_run import make_dagster_home
from benchmarks.databases import HOME
from console.process_group import ProcessGroups

START_SECONDS = 90.0
"""For web server, daemon and code server to come up; about 10 s on two cores with nothing else to do."""


class DagsterDidNotStart(Exception):
    """Its web server does not answer, or it ended; the message names its log."""


@contextmanager
def dagster(module: str) -> Iterator[str]:
    """The URL of its web server while the block runs; every process that it started ends with the block."""
    make_dagster_home()
    logs = HOME / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    port = _free_port()
    url = f"http://127.0.0.1:{port}"
    with ProcessGroups(os.environ, logs) as children:
        command = [sys.executable, "-m", "dagster", "dev", "-m", module, "-h", "127.0.0.1", "-p", str(port)]
        child = children.start("dagster", command)
        give_up = time.monotonic() + START_SECONDS
        while not _answers(url):
            if child.poll() is not None or time.monotonic() > give_up:
                raise DagsterDidNotStart(f"Dagster did not start; read {logs / 'dagster.log'}")
            time.sleep(0.5)
        yield url


def _answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/server_info", timeout=5, trust_env=False).is_success
    except httpx.TransportError:
        return False


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port
