"""What every test finds: its own database, and nothing of the machine around it."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parent.parent

# A test never touches what the shell around it points at, and leaves nothing outside the ignored folder.
for name in ("FAILSAFE_DATABASE_URL", "FAILSAFE_DAGSTER_URL", "DAGSTER_HOME", "DAGSTER_PG_URL"):
    os.environ.pop(name, None)
os.environ["DAGSTER_DISABLE_TELEMETRY"] = "1"
os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = str(ROOT / ".failsafe" / "hypothesis")
os.environ["PYTEST_DEBUG_TEMPROOT"] = str(ROOT / ".failsafe" / "tmp")
(ROOT / ".failsafe" / "tmp").mkdir(parents=True, exist_ok=True)

# In the background a shell has Ctrl-C ignored, and programs that tests start and interrupt would inherit that.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# On a shared machine one slow example says nothing; `timeout` in pyproject.toml still ends a test that hangs.
settings.register_profile("shared machine", deadline=None)
settings.load_profile("shared machine")

pytest_plugins = ["tests.postgres"]


def pytest_xdist_auto_num_workers() -> int:
    """One test process more than there are cores: tests wait for databases, providers and processes of their own."""
    return (os.cpu_count() or 1) + 1


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real public data that lies beside a checkout; tests that need it are skipped where it is not."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("needs the real data in ../shared/data")
    return folder
