"""What the tests of restores do again and again."""

from __future__ import annotations

from datetime import timedelta
from typing import ClassVar

from ops.assess import assess
from ops.extract import extract
from ops.validate import validate
from policies.outcomes import Semantics
from resources.store.restores import restore_standing
from tests.ops.passes import Shop
from tests.ops.tills import HookedTill


class OnlyAsked(HookedTill):
    """A till that does whatever it is told again, but can be asked."""

    semantics: ClassVar[Semantics] = Semantics(lookup=True, timeout=timedelta(seconds=1))


class Blind(HookedTill):
    """A till that knows nothing of keys."""

    semantics: ClassVar[Semantics] = Semantics(timeout=timedelta(seconds=1))


def released(shop: Shop, payloads: dict[str, dict[str, str]]) -> None:
    """Requests that were released, and of which nothing was sent."""
    shop.queue(payloads)
    shop.run(extract, validate, assess)
    assert set(shop.states().values()) == {"executing"}


def let_absence_count(shop: Shop) -> None:
    """Let so much time pass since the restore that whatever was under way then would show."""
    for table in ("proposals", "assessments"):
        shop.execute(f"alter table {table} disable trigger user")
        shop.execute(
            f"update {table} set created_at = created_at - interval '1 h'"
            " where created_at < (select max(opened_at) from epochs where number > 0)"
        )
        shop.execute(f"alter table {table} enable trigger user")
    shop.execute("update epochs set opened_at = opened_at - interval '1 h' where number > 0")


def waiting(shop: Shop) -> int:
    """How many requests wait to be cleared."""
    standing = restore_standing(shop.url)
    assert standing is not None
    return standing.waiting


def settled(shop: Shop) -> None:
    """Passes until everything that was under way at the restore would show, and what follows from it is done."""
    shop.run()
    let_absence_count(shop)
    shop.run_again(4)


def no_answer(_key: str) -> None:
    """The provider cannot be asked now."""
    raise TimeoutError("no answer")


def dying(_key: str = "") -> None:
    """The machine goes down before the till did anything."""
    raise KeyboardInterrupt
