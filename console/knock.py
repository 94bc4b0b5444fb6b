"""Knocking at Dagster's door after a vote, so that what was released need not wait for the sensor's next look.

Nothing rests on it: the vote is committed before, and the sensor finds it whether or not anybody knocked.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Final
from uuid import UUID

from console.dagster_web import DagsterWeb
from policies.errors import FailsafeError
from resources.store.inbox import batch_of

PAUSE_SECONDS: Final = 3.0
"""Between two knocks for one batch: what is released in between shares the later one."""

_LOG = logging.getLogger(__name__)


class Knock:
    """Says to Dagster which batches have something released, from a thread of its own."""

    def __init__(self, database_url: str, dagster: DagsterWeb, pause_seconds: float = PAUSE_SECONDS) -> None:
        self._database_url = database_url
        self._dagster = dagster
        self._pause = pause_seconds
        self._released: queue.SimpleQueue[UUID] = queue.SimpleQueue()
        self._due: dict[tuple[str, str], float] = {}
        """When to knock for each batch, by the monotonic clock."""
        self._last: dict[tuple[str, str], float] = {}
        self._told = False
        threading.Thread(target=self._work, name="knock", daemon=True).start()

    def released(self, approval_id: UUID) -> None:
        """Note that a vote released this approval request; returns at once and never raises."""
        self._released.put(approval_id)

    def _work(self) -> None:
        while True:
            self._wait()
            now = time.monotonic()
            for batch in [batch for batch, at in self._due.items() if at <= now]:
                del self._due[batch]
                self._last[batch] = time.monotonic()
                self._carefully(partial(self._knock, batch))
            self._last = {batch: at for batch, at in self._last.items() if now - at < self._pause}

    def _wait(self) -> None:
        """Until something was released or a knock is due."""
        patience = max(0.0, min(self._due.values()) - time.monotonic()) if self._due else None
        try:
            approval_id = self._released.get(timeout=patience)
        except queue.Empty:
            return
        self._carefully(partial(self._note, approval_id))

    def _note(self, approval_id: UUID) -> None:
        batch = batch_of(self._database_url, approval_id)
        now = time.monotonic()
        self._due.setdefault(batch, max(now, self._last.get(batch, now - self._pause) + self._pause))

    def _knock(self, batch: tuple[str, str]) -> None:
        self._dagster.start_run(*batch)
        self._told = False

    def _carefully(self, act: Callable[[], object]) -> None:
        """Say once that knocking does not work, and again only if it did in the meantime; this thread goes on."""
        try:
            act()
        except Exception as error:  # noqa: BLE001  # whatever it is, the sensor does the same a little later
            if not self._told:
                _LOG.warning("%s", _complaint(error))
            self._told = True


def knock_once(database_url: str, approval_id: UUID) -> None:
    """Knock for one approval request that was just released, if Dagster's URL is set; waits, and never raises."""
    try:
        dagster = DagsterWeb.from_environment()
        if dagster is not None:
            dagster.start_run(*batch_of(database_url, approval_id))
    except Exception as error:  # noqa: BLE001  # the vote is counted whatever becomes of the knock
        _LOG.warning("%s", _complaint(error))


def _complaint(error: Exception) -> str:
    what = str(error) if isinstance(error, FailsafeError) else type(error).__name__
    return f"Dagster was not told of a vote, so its sensor finds it a few seconds later: {what}"
