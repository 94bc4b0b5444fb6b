"""Start a run in a process of its own and read back what it cost."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import dagster as dg

from benchmarks.databases import HOME
from benchmarks.workflow import WORKFLOW_VARIABLE


@dataclass(frozen=True, slots=True)
class RunCost:
    """One run. Times are in seconds; `cpu` is the process's own, without the database's."""

    wall: float
    in_ops: float
    cpu: float
    rss_mb: float
    events: int

    @property
    def overhead(self) -> float:
        """What the process spent outside the ops: starting, importing, Dagster's own work, ending."""
        return self.wall - self.in_ops


def make_dagster_home() -> None:
    """A Dagster home with this repository's dagster.yaml; its tables are made now, not by the first run."""
    home = (HOME / "dagster").resolve()
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    shutil.copy(Path(__file__).parent.parent / "dagster.yaml", home)
    os.environ["DAGSTER_HOME"] = str(home)
    with dg.DagsterInstance.get() as instance:
        instance.get_runs(limit=1)


def run_job(workflow: str, batch: str) -> RunCost:
    """Advance a batch in a fresh process.

    Raises:
        subprocess.CalledProcessError: the process did not end well; what it said stands on stderr.
    """
    command = [sys.executable, "-m", "benchmarks.one_run", batch]
    log = HOME / "run.log"
    with log.open("w") as errors:
        began = time.monotonic()
        process = subprocess.Popen(
            command, env=os.environ | {WORKFLOW_VARIABLE: workflow}, stdout=subprocess.PIPE, stderr=errors, text=True
        )
        assert process.stdout is not None
        said = process.stdout.read()
        _, status, used = os.wait4(process.pid, 0)
        wall = time.monotonic() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.stderr.write(log.read_text()[-4000:])
        raise subprocess.CalledProcessError(process.returncode, command)
    kilobytes = used.ru_maxrss / (1024 if sys.platform == "darwin" else 1)
    events, in_ops = _events(said.split()[-1])
    return RunCost(wall, in_ops, used.ru_utime + used.ru_stime, kilobytes / 1024, events)


def _events(run_id: str) -> tuple[int, float]:
    """How many events the run left in Dagster's log, and the seconds between start and end of each op, added up."""
    with dg.DagsterInstance.get() as instance:
        entries = instance.all_logs(run_id)
    seconds = 0.0
    for entry in entries:
        if entry.dagster_event is not None:
            kind = entry.dagster_event.event_type
            if kind is dg.DagsterEventType.STEP_START:
                seconds -= entry.timestamp
            elif kind is dg.DagsterEventType.STEP_SUCCESS:
                seconds += entry.timestamp
    return len(entries), seconds
