"""What the database gave up because others were in the way is tried again, and not for ever."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from policies.errors import StoreContended, StoreUnavailable
from resources.store.contention import TRIES, again_when_contended
from resources.store.engine import Duty, engine_for, transaction
from tests.postgres import Database


class Work:
    """A transaction that the database refuses with an SQLSTATE for the first so many times."""

    def __init__(self, database: Database, sqlstate: str, times: int) -> None:
        self.engine = engine_for(Duty.WORKER, database.url())
        self.sqlstate, self.times, self.tries = sqlstate, times, 0

    @again_when_contended
    def do(self) -> str:
        """The work, tried."""
        self.tries += 1
        with transaction(self.engine) as connection:
            if self.tries <= self.times:
                refusal = f"do $$ begin raise exception 'refused' using errcode = '{self.sqlstate}'; end $$"
                connection.execute(sa.text(refusal))
        return "done"


@pytest.mark.parametrize("sqlstate", ["40001", "40P01", "55P03"])
def test_contention_is_tried_again(database: Database, sqlstate: str) -> None:
    """A deadlock, a serialisation failure or a lock that was not to be had passes by itself."""
    work = Work(database, sqlstate, times=2)
    assert (work.do(), work.tries) == ("done", 3)


def test_contention_that_stays_is_told(database: Database) -> None:
    """After five tries it is an error that names the SQLSTATE."""
    work = Work(database, "40P01", times=100)
    with pytest.raises(StoreContended, match="40P01: deadlock"):
        work.do()
    assert work.tries == TRIES


@pytest.mark.parametrize(
    ("sqlstate", "said"),
    [("57P01", "run `failsafe doctor`"), ("53100", "no room left on its disk"), ("53200", "out of memory")],
)
def test_nothing_else_is_tried_again(database: Database, sqlstate: str, said: str) -> None:
    """A server that shuts down or has run out of something is not contention; the error says what to do."""
    work = Work(database, sqlstate, times=1)
    with pytest.raises(StoreUnavailable, match=said):
        work.do()
    assert work.tries == 1


def test_what_was_given_up_inside_is_not_begun_anew_outside(database: Database) -> None:
    """A step that begins anew would find its work leased, do nothing, and nobody would hear of it."""
    work = Work(database, "55P03", times=100)
    outer = again_when_contended(work.do)
    with pytest.raises(StoreContended, match="55P03"):
        outer()
    assert work.tries == TRIES
