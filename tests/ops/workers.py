"""Worker processes that stop at a chosen moment, so that a test can kill them there."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from ops import batch as chunks
from ops.batch import WorkflowRun, open_pass
from ops.process_batch import STEPS
from tests.ops import jobs, toy
from tests.ops.passes import Shop
from tests.ops.tills import HookedTill, hook

# A server that forks has the imports made once; forking the test process itself would share its connections.
_PROCESSES = multiprocessing.get_context("forkserver")
_PROCESSES.set_forkserver_preload([__name__])

PATIENCE = 30.0
"""Seconds a test waits for a worker to come as far as it should."""


@contextmanager
def worker(shop: Shop, stop_at: str = "", *, job: bool = False, chunk: int = 500) -> Iterator[BaseProcess]:
    """A process that makes one pass, or runs the Dagster `job`, and stops at a moment until it may go on.

    The moment is one of a refund's at the till (`before`, `after`, `look_up`), or `model`: when the model is asked. The
    process is killed when the block ends.
    """
    arguments = (shop.url, shop.folder, shop.batch, stop_at, job, chunk)
    process = _PROCESSES.Process(target=_work, args=arguments, daemon=True)
    process.start()
    try:
        yield process
    finally:
        kill(process)
        for name in (f"stopped-{process.pid}", "go"):
            (shop.folder / name).unlink(missing_ok=True)


def kill(process: BaseProcess) -> None:
    """End the process as a machine's failure would."""
    assert process.pid is not None
    if process.is_alive():
        os.kill(process.pid, signal.SIGKILL)
    process.join()


def wait_until(condition: Callable[[], object]) -> None:
    """Wait until something is so; fails when it does not come about."""
    give_up = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < give_up, "the worker did not come that far"
        time.sleep(0.02)


def wait_for_stop(shop: Shop, workers: int = 1) -> None:
    """Wait until so many workers stand at their moment."""
    wait_until(lambda: len(list(shop.folder.glob("stopped-*"))) >= workers)


def go_on(shop: Shop) -> None:
    """Let the workers that stand at their moment go on."""
    (shop.folder / "go").touch()


def wait_for_lock(shop: Shop) -> None:
    """Wait until a worker waits for a lock that the test holds."""
    waiting = "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
    wait_until(lambda: shop.rows(waiting))


def _work(url: str, folder: Path, batch: str, stop_at: str, job: bool, chunk: int) -> None:
    def stop(about: object) -> None:
        if "stock" not in str(about) and "customer" not in str(about):
            (folder / f"stopped-{os.getpid()}").touch()
            while not (folder / "go").exists():
                time.sleep(0.02)

    def model(request: toy.RefundRequest) -> Any:
        stop(request)
        return toy.toy_model(request)

    chunks.CHUNK = chunk
    workflow = jobs.found_workflow(folder)
    if stop_at == "model":
        workflow = replace(workflow, extractor=model)
    elif stop_at:
        hook(HookedTill(file=str(folder / "till.sqlite")), stop_at, stop)  # type: ignore[arg-type]  # a name crosses
    run = WorkflowRun(workflow, url, lease_seconds=5)
    if job:
        jobs.toy_job().execute_in_process(partition_key=batch, resources={"workflow": run})
        return
    opened = open_pass(run, batch, f"worker-{os.getpid()}")
    for step in STEPS:
        opened.carry_out(step)
