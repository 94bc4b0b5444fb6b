"""Child processes that never outlive us: each in a session of its own, all ended however we end."""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType, TracebackType
from typing import Self

_PR_SET_PDEATHSIG = 1
PATIENCE = 5.0
"""Seconds between asking a group to end and killing it."""


class ProcessGroups:
    """Starts children and ends each with everything it started, on leaving the block, on Ctrl-C and on SIGTERM.

    They have a temporary folder of their own, which goes with them: Dagster's servers leave their sockets behind.
    """

    def __init__(self, environment: Mapping[str, str], logs: Path) -> None:
        self._environment = dict(environment)
        self._logs = logs
        self._children: list[subprocess.Popen[bytes]] = []
        self._names: dict[int, str] = {}

    def __enter__(self) -> Self:
        self._previous = signal.signal(signal.SIGTERM, _interrupt)
        # Not in our own folder: the path of a socket may have no more than 107 characters.
        self._environment["TMPDIR"] = tempfile.mkdtemp(prefix="failsafe-")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        signal.signal(signal.SIGTERM, self._previous)
        for child in reversed(self._children):
            _signal_group(child, signal.SIGTERM)
        give_up = time.monotonic() + PATIENCE
        for child in reversed(self._children):
            with suppress(subprocess.TimeoutExpired):
                child.wait(max(0.0, give_up - time.monotonic()))
            _signal_group(child, signal.SIGKILL)  # a group's leader may be gone while its members are not
            child.wait()
        shutil.rmtree(self._environment["TMPDIR"], ignore_errors=True)

    def start(self, name: str, command: Sequence[str]) -> subprocess.Popen[bytes]:
        """Start a child in a group of its own; what it prints goes to `<name>.log`."""
        with (self._logs / f"{name}.log").open("ab") as log:
            child = subprocess.Popen(
                command,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=_die_with_parent if sys.platform == "linux" else None,  # noqa: PLW1509  # one system call
            )
        self._children.append(child)
        self._names[child.pid] = name
        return child

    def wait_for_an_end(self) -> str:
        """Wait until a child has ended, whichever it is; returns its name."""
        while True:
            for child in self._children:
                if child.poll() is not None:
                    return self._names[child.pid]
            time.sleep(0.5)

    def kill(self, child: subprocess.Popen[bytes]) -> None:
        """SIGKILL a child and all it started, now."""
        _signal_group(child, signal.SIGKILL)
        child.wait()


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _signal_group(child: subprocess.Popen[bytes], number: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(child.pid, number)


def _die_with_parent() -> None:
    """Ask the kernel to end the child when we are killed and can no longer do it."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
