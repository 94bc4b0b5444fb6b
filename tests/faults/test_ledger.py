"""The providers' books of a schedule."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

from tests.faults.ledger import Ledger

_STOPS = 60

_PROVIDER = """
import os, signal, sys, threading, time
from random import Random
from tests.faults.ledger import Ledger, between_entries

books, rng = Ledger(sys.argv[1]), Random(7)

def work():
    while True:
        with books.writing() as transaction:
            books.write(transaction, "key", ("pay.keyed", "order"))

for _ in range(2):
    threading.Thread(target=work, daemon=True).start()
while True:
    time.sleep(rng.random() * 0.02)
    with between_entries():
        os.kill(os.getpid(), signal.SIGSTOP)
"""


def test_books_can_be_read_while_a_worker_that_writes_them_is_stopped(tmp_path: Path) -> None:
    """It is stopped only between its entries, so that it holds nothing of the provider meanwhile."""
    ledger = Ledger(str(tmp_path / "books.sqlite"))
    ledger.create()
    provider = subprocess.Popen([sys.executable, "-c", _PROVIDER, ledger.file])
    try:
        for _ in range(_STOPS):
            os.waitpid(provider.pid, os.WUNTRACED)
            assert isinstance(ledger.effects(), Counter)  # sqlite3.OperationalError is what would come
            os.kill(provider.pid, signal.SIGCONT)
        assert ledger.effects()["pay.keyed", "order"] > 0
    finally:
        provider.kill()
        provider.wait()
