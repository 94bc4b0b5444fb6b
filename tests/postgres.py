"""Databases for tests: on the server of FAILSAFE_TEST_DATABASE_URL, or else on an embedded one of this session."""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from sqlalchemy import URL, NullPool, create_engine, make_url, text

from resources.embedded_postgres import EmbeddedPostgres, remove_all

SERVERS = Path(__file__).resolve().parent.parent / ".failsafe" / "tests"

PASSWORD = "failsafe-test"
"""Of every login role, where the server asks for one: such a server is there for tests alone."""


@dataclass(frozen=True)
class Database:
    """One database for one test."""

    superuser: URL

    def url(self, role: str = "postgres", driver: str = "psycopg") -> str:
        """The SQLAlchemy URL for a login role; `postgres` stands for the server's superuser, whatever its name."""
        url = self.superuser.set(drivername=f"postgresql+{driver}")
        if role != "postgres":
            url = url.set(username=role, password=PASSWORD if url.host else None)
        return url.render_as_string(hide_password=False)


class Server:
    """Makes the databases of one test session and drops those that killed sessions left."""

    def __init__(self, superuser: URL) -> None:
        self._superuser = superuser
        self._session = secrets.randbelow(2**31)
        self._made = 0
        self._connection = create_engine(superuser, isolation_level="AUTOCOMMIT", poolclass=NullPool).connect()
        # Says that this session lives; the server itself lets go of it when the session ends, however that happens.
        self._connection.execute(text("select pg_advisory_lock(:session)"), {"session": self._session})
        self._drop_leftovers()

    def close(self) -> None:
        """End the session on this server."""
        self._connection.close()

    @contextmanager
    def database(self, template: str = "template0") -> Iterator[Database]:
        """A new database like `template`, dropped when the block ends, whoever is still connected."""
        self._made += 1
        name = f"failsafe_test_{self._session}_{self._made}"
        self._connection.execute(text(f"create database {name} template {template}"))
        try:
            yield Database(self._superuser.set(database=name))
        finally:
            self._connection.execute(text(f"drop database {name} with (force)"))

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Other test sessions wait meanwhile: roles belong to the whole server."""
        self._connection.execute(text("select pg_advisory_lock(:everybody)"), {"everybody": 2**31})
        try:
            yield
        finally:
            self._connection.execute(text("select pg_advisory_unlock(:everybody)"), {"everybody": 2**31})

    def set_passwords(self) -> None:
        """Let the login roles of the schema sign in, where the server asks for a password."""
        if self._superuser.host:
            roles = text(r"select rolname from pg_roles where rolcanlogin and rolname like 'failsafe\_%'")
            for role in self._connection.scalars(roles).all():
                self._connection.execute(text(f"alter role {role} password '{PASSWORD}'"))

    def _drop_leftovers(self) -> None:
        databases = text(r"select datname from pg_database where datname ~ '^failsafe_test_\d+_\d+$'")
        for name in self._connection.scalars(databases).all():
            session = {"session": int(name.split("_")[2])}
            if self._connection.scalar(text("select pg_try_advisory_lock(:session)"), session):
                self._connection.execute(text(f"drop database if exists {name}"))
                self._connection.execute(text("select pg_advisory_unlock(:session)"), session)


@pytest.fixture(scope="session")
def servers() -> Iterator[Path]:
    """The session's folder for embedded servers; all in it end with the session, or with the next one if killed."""
    SERVERS.mkdir(parents=True, exist_ok=True)
    own = SERVERS / secrets.token_hex(4)
    with (SERVERS / "lock").open("w") as one_at_a_time:
        fcntl.flock(one_at_a_time, fcntl.LOCK_EX)
        for folder in filter(Path.is_dir, SERVERS.iterdir()):
            with (folder / "session").open("w") as alive, suppress(BlockingIOError):
                fcntl.flock(alive, fcntl.LOCK_EX | fcntl.LOCK_NB)
                remove_all(folder)
                shutil.rmtree(folder)
        own.mkdir()
        session = (own / "session").open("w")
        fcntl.flock(session, fcntl.LOCK_EX)
    with session:
        yield own
        remove_all(own)
        shutil.rmtree(own)


def _spare_the_disk(url: str) -> None:
    """Let commits stay in the operating system's cache: it outlives every process that a test kills."""
    with create_engine(url, isolation_level="AUTOCOMMIT", poolclass=NullPool).connect() as connection:
        connection.execute(text("alter system set fsync = off"))
        connection.execute(text("select pg_reload_conf()"))


@pytest.fixture(scope="session")
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """The server of this test session."""
    url = os.environ.get("FAILSAFE_TEST_DATABASE_URL")
    if not url:
        embedded = EmbeddedPostgres(request.getfixturevalue("servers") / "main")
        embedded.start()
        url = embedded.url()
        _spare_the_disk(url)
    server = Server(make_url(url).set(drivername="postgresql+psycopg", database="postgres"))
    yield server
    server.close()


@pytest.fixture(scope="session")
def migrated(server: Server) -> Iterator[Database]:
    """The database with the schema in force that each test's own is a copy of; nobody may be connected to it."""
    from resources.store.migrate import upgrade

    with server.database() as database:
        with server.alone():
            upgrade(database.url())
            server.set_passwords()
        yield database


@pytest.fixture
def empty_database(server: Server) -> Iterator[Database]:
    """A database of the test's own without our schema."""
    with server.database() as database:
        yield database


@pytest.fixture
def database(server: Server, migrated: Database) -> Iterator[Database]:
    """A database of the test's own with the schema in force."""
    from resources.store.engine import close_engines

    with server.database(template=str(migrated.superuser.database)) as database:
        yield database
        close_engines()
