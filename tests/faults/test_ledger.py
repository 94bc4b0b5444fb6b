"""The providers' books of a schedule."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from random import Random

from tests.faults.ledger import Ledger

_STOPS = 25

_PROVIDER = """
import sys, threading
from tests.faults.ledger import Ledger

books = Ledger(sys.argv[1])

def work():
    while True:
        with books.writing() as transaction:
            books.write(transaction, "key", ("pay.keyed", "order"))

for _ in range(2):
    threading.Thread(target=work, daemon=True).start()
print("working", flush=True)
threading.Event().wait()
"""


def test_books_can_be_read_while_a_process_that_writes_them_is_stopped_anywhere(tmp_path: Path) -> None:
    """A worker that is stopped while it opens, writes or closes the books keeps nobody from reading them."""
    ledger = Ledger(str(tmp_path / "books.sqlite"))
    held = ledger.create()
    rng = Random(7)
    provider = subprocess.Popen([sys.executable, "-c", _PROVIDER, ledger.file], stdout=subprocess.PIPE, text=True)
    try:
        assert provider.stdout
        assert provider.stdout.readline() == "working\n"
        for _ in range(_STOPS):
            time.sleep(rng.random() * 0.05)
            os.kill(provider.pid, signal.SIGSTOP)
            assert isinstance(ledger.effects(), Counter)  # sqlite3.OperationalError is what would come
            os.kill(provider.pid, signal.SIGCONT)
        assert ledger.effects()["pay.keyed", "order"] > 0
    finally:
        provider.kill()
        provider.communicate()
        held.close()
