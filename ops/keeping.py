"""Keeping a lease while calls are out: renewed by the loop that makes progress, never by a timer of its own."""

from __future__ import annotations

import uuid

from ops.batch import Batch
from ops.parallel import TICK
from resources.store.claim import Lease, renew


class LeaseKeeper:
    """Renews one lease in time for calls of at most `call_seconds`."""

    def __init__(self, batch: Batch, lease: Lease, call_seconds: float = 0.0) -> None:
        self._batch = batch
        self._lease = lease
        # The loop comes by every TICK: until then there must be enough left to begin another call.
        self._least = max(lease.length.total_seconds() / 2, call_seconds + TICK)

    def keep(self) -> None:
        """Renew if it is time; a request that is no longer ours stays lost."""
        if self._lease.seconds_left() < self._least:
            renew(self._batch.engine, self._lease)
            self._batch.beat()

    def holds(self, request_id: uuid.UUID, seconds: float) -> bool:
        """Whether the request's lease certainly outlasts a call of `seconds`."""
        return request_id in self._lease.held and self._lease.seconds_left() > seconds
