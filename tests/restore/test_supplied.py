"""A request that got its input after the backup was taken: supplied again, it is looked up before anything starts."""

from __future__ import annotations

from resources.store.inputs import supply
from tests.operator.desk import WHY, Desk
from tests.operator.supplying import Model, Refunds
from tests.ops.passes import Shop
from tests.restore.conftest import Backup
from tests.restore.restoring import settled


def test_what_was_supplied_and_done_since_the_backup_is_not_done_again(shop: Shop, desk: Desk, backup: Backup) -> None:
    """The provider is asked first; what it tells has no decision in the store, so a person looks."""
    shop.define(request=Refunds, extractor=Model())
    initiator = desk.sign_in(shop.clerk)
    shop.queue({"one": {"order_id": "A1"}})
    shop.run()
    restore = backup()
    supply(shop.url, initiator, desk.id("one"), shop.workflow, {"text": "TOTAL 20.00 EUR"}, WHY)
    shop.run()
    assert (shop.states(), len(shop.calls())) == ({"one": "completed"}, 1)
    restore()
    assert shop.states() == {"one": "needs_review"}
    supply(shop.url, desk.sign_in(shop.clerk), desk.id("one"), shop.workflow, {"text": "TOTAL 21.00 EUR"}, WHY)
    settled(shop)
    assert (shop.states(), len(shop.calls()), len(shop.effects())) == ({"one": "dead_lettered"}, 1, 1)
    assert "by a decision the store no longer holds" in desk.open_cases()[0]
