"""A restore begins an epoch: by itself where it shows, by an operator's word, and never without one."""

from __future__ import annotations

import pytest

from resources.store.restores import declare_restored, restore_standing
from tests.operator.desk import WHY, Desk
from tests.ops.passes import Shop, refund
from tests.restore.conftest import Backup
from tests.restore.restoring import released, settled


def test_requests_received_since_are_no_affair_of_it(shop: Shop, backup: Backup) -> None:
    """They are started at once."""
    released(shop, {"one": refund()})
    restore = backup()
    restore()
    shop.run()
    shop.queue({"new": refund(order="A2")})
    shop.run()
    assert shop.states() == {"one": "executing", "new": "completed"}


def test_an_operator_says_that_the_store_was_restored(shop: Shop, desk: Desk, backup: Backup) -> None:
    """A dump read back into the same database shows nowhere: the epoch begins by an operator's word, in the ledger."""
    released(shop, {"one": refund()})
    restore = backup()
    shop.run()
    restore()
    shop.execute("update epochs set identity = store_identity()")
    assert restore_standing(shop.url) is None
    assert declare_restored(shop.url, desk.session, WHY) == 1
    standing = restore_standing(shop.url)
    assert standing is not None
    assert (standing.epoch, standing.opened_by, standing.reason, standing.waiting) == (1, "olga", WHY, 1)
    settled(shop)
    assert (shop.states(), len(shop.calls())) == ({"one": "completed"}, 1)
    assert [row.type for row in shop.rows("select type from audit_events where type = 'operator.restored'")] != []


def test_a_restore_that_shows_is_noticed_once(shop: Shop, backup: Backup) -> None:
    """The first run opens the epoch and writes it into the ledger; the next ones find it open."""
    released(shop, {"one": refund()})
    backup()()
    shop.run()
    shop.run()
    assert [row.number for row in shop.rows("select number from epochs order by number")] == [0, 1]
    assert len(shop.rows("select from audit_events where type = 'store.restored'")) == 1


def test_without_a_restore_nothing_is_looked_up(shop: Shop) -> None:
    """The store stays in the epoch of its first request."""
    shop.hooked(look_up=lambda key: pytest.fail(f"{key} was looked up"))
    shop.queue({"one": refund(say="saga")})
    shop.run()
    assert shop.states() == {"one": "completed"}
    assert [row.number for row in shop.rows("select number from epochs")] == [0]
    assert restore_standing(shop.url) is None


@pytest.mark.parametrize("part", [1, 2, 3])
def test_another_server_timeline_or_database_is_another_ground(shop: Shop, part: int) -> None:
    """Each part of what the store noted of its ground counts."""
    released(shop, {"one": refund()})
    shop.execute(
        "update epochs set identity = (select string_agg(case when ord = :part then '7' else one end, ':' order by ord)"
        " from string_to_table(identity, ':') with ordinality t (one, ord))",
        part=part,
    )
    standing = restore_standing(shop.url)
    assert standing is not None
    assert (standing.epoch, standing.opened_at, standing.waiting) == (1, None, 1)


def test_a_server_that_does_not_tell_is_no_obstacle(shop: Shop) -> None:
    """Where the control data may not be read, only the database counts."""
    shop.execute("revoke execute on function pg_control_system() from public")
    shop.queue({"one": refund()})
    shop.run()
    assert shop.states() == {"one": "completed"}
    assert shop.row("select identity from epochs").identity.startswith("?:?:")
