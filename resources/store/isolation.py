"""One bad item never stops a chunk: on a data error the chunk is halved until the bad item stands alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from resources.store.engine import sqlstate

Item = TypeVar("Item")

_DATA_ERRORS = ("22", "23", "FS")
"""SQLSTATE classes that a row causes (data, constraint, our triggers). Any other error is about the connection or the
moment, and the whole chunk is retried later."""


def write_in_halves(
    connection: sa.Connection, items: Sequence[Item], write: Callable[[Sequence[Item]], None]
) -> list[tuple[Item, str]]:
    """Write `items` through `write`, in savepoints; return the items the database refused, each with the reason.

    Raises:
        DBAPIError: the error is not one that a single item causes.
    """
    if not items:
        return []
    try:
        with connection.begin_nested():
            write(items)
        return []
    except DBAPIError as error:
        state = sqlstate(error)
        if state is None or not state.startswith(_DATA_ERRORS):
            raise
        if len(items) == 1:
            diagnostic = getattr(error.orig, "diag", None)
            constraint = getattr(diagnostic, "constraint_name", None)
            return [
                (items[0], f"the database refused it: SQLSTATE {state}" + (f", {constraint}" if constraint else ""))
            ]
    middle = len(items) // 2
    return write_in_halves(connection, items[:middle], write) + write_in_halves(connection, items[middle:], write)
