"""`failsafe db`: make the schema, bring it up to date, say which one it is."""

from __future__ import annotations

import os
from typing import Annotated

import sqlalchemy as sa
import typer

from console.output import AsJson, print_json, print_lines
from console.store import store_url
from console.tokens import TokenFile, read_token
from policies.errors import SchemaMismatch
from resources.database_url import database_url
from resources.store.engine import Duty, transaction
from resources.store.migrate import KNOWN_REVISIONS, SCHEMA_REVISION, current_revision, upgrade
from resources.store.operator import sign_in
from resources.store.restores import declare_restored, restore_standing

commands = typer.Typer()
db = typer.Typer(
    no_args_is_help=True,
    help="The schema `failsafe` in your PostgreSQL (14 or later), beside Dagster's own tables or in another database. "
    "init and upgrade need a login that may create roles: FAILSAFE_ADMIN_URL, by default FAILSAFE_DATABASE_URL.",
)
commands.add_typer(db, name="db")


@db.command()
def init(as_json: AsJson = False) -> None:
    """Create roles, schema and tables where there are none. Safe to repeat: on an existing schema it is `upgrade`."""
    _bring_up(as_json, next_step="next: failsafe principals add NAME --role ROLE, then failsafe doctor")


@db.command("upgrade")
def upgrade_schema(as_json: AsJson = False) -> None:
    """Bring an existing schema to this version. Runs beside live work; two upgrades at once take turns."""
    if _revision(_admin_url()) is None:
        raise SchemaMismatch("this database has no schema `failsafe` yet; run `failsafe db init`")
    _bring_up(as_json, next_step="")


@db.command()
def status(as_json: AsJson = False) -> None:
    """Say which schema revision the database has and whether this code runs on it. Exit code 1 if not."""
    revision = _revision(database_url())
    known = revision in KNOWN_REVISIONS
    if as_json:
        print_json({"revision": revision, "known": known, "wanted": SCHEMA_REVISION})
    else:
        remedy = "" if known else f"; run `failsafe db {'upgrade' if revision else 'init'}`"
        print_lines(f"schema revision {revision or 'none'}, this code wants {SCHEMA_REVISION}{remedy}")
    if not known:
        raise typer.Exit(1)


@db.command()
def restored(
    reason: Annotated[str, typer.Option(help="Which backup, and why; stands in the ledger.")],
    token_file: TokenFile = None,
    as_json: AsJson = False,
) -> None:
    """Say that this database was restored from a backup. Stop the runs first; say this before you start them again.

    What was done after the backup was taken is not in it. So nothing of a request that is open in it is started until
    runs have looked up at the providers what it did: what is found is recorded, not repeated; what a provider neither
    shows nor would recognise goes to a person. Another server, a promoted standby or a copy of the database is noticed
    without this; a dump read back into the same database is not.

    Requests received after the backup was taken are gone from it. Submitted again they are new requests under new keys:
    look at the provider before you do that.
    """
    url = store_url(Duty.OPERATOR)
    session = sign_in(url, read_token(token_file))
    epoch = declare_restored(url, session, reason)
    standing = restore_standing(url)
    waiting = 0 if standing is None else standing.waiting
    if as_json:
        print_json({"epoch": epoch, "waiting": waiting})
    else:
        print_lines(
            f"epoch {epoch}: {waiting} open requests wait until it is looked up what they did",
            "next: start the runs; failsafe status says how many still wait, failsafe unknown list which need a person",
        )


def _bring_up(as_json: bool, next_step: str) -> None:
    url = _admin_url()
    before = _revision(url)
    after = upgrade(url)
    if as_json:
        print_json({"before": before, "revision": after})
    else:
        print_lines(f"schema revision {before or 'none'} -> {after}", *filter(None, [next_step]))


def _admin_url() -> str:
    return os.environ.get("FAILSAFE_ADMIN_URL") or database_url()


def _revision(url: str) -> str | None:
    engine = sa.create_engine(url, poolclass=sa.NullPool, hide_parameters=True)
    with transaction(engine) as connection:
        return current_revision(connection)
