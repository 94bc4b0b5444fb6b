"""Ways by which a request of before a restore might get past being looked up."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa

from policies.errors import NotPossibleNow
from resources.store.restores import declare_restored
from tests.operator.desk import WHY, Desk
from tests.operator.test_late_undo import due, late_reservation, undo
from tests.operator.test_unseen_effects import OnlyKeyed
from tests.ops import toy
from tests.ops.passes import Shop, refund
from tests.ops.tills import HookedTill
from tests.restore.conftest import Backup
from tests.restore.restoring import OnlyAsked, let_absence_count, released, settled, waiting


def test_what_was_only_received_is_not_just_cancelled(shop: Shop, desk: Desk, backup: Backup) -> None:
    """It may have been proposed, released and done since the backup."""
    shop.queue({"one": refund()})
    restore = backup()
    shop.run()
    restore()
    with pytest.raises(NotPossibleNow, match="not looked up yet"):
        desk.cancel("one")
    assert len(shop.effects()) == 1


def test_what_was_only_received_is_not_just_rejected(shop: Shop, backup: Backup) -> None:
    """Proposed anew and refused in its first round, it is looked up all the same."""
    shop.queue({"one": refund()})
    restore = backup()
    shop.run()
    restore()
    shop.set_policy(toy.POLICY.replace("low: auto", "low: refuse"))
    settled(shop)
    assert (len(shop.effects()), shop.states()) == (1, {"one": "dead_lettered"})


@pytest.mark.parametrize("till", [OnlyAsked, HookedTill])
def test_a_late_undo_is_not_done_again(shop: Shop, desk: Desk, backup: Backup, till: type[HookedTill]) -> None:
    """Nobody knows whether it was done since: whoever wanted it looks, and asks again."""
    key = late_reservation(shop, desk)
    undo(shop, desk, key)
    shop.hooked(till)
    restore = backup()
    shop.run()
    restore()
    settled(shop)
    due(shop)
    shop.run()
    assert len(shop.calls("stock.unreserve")) == 1
    assert "see whether it was undone already" in desk.open_cases()[-1]


def test_a_key_is_not_sent_that_was_forgotten_while_people_voted(shop: Shop, backup: Backup) -> None:
    """The provider's memory counts from when the request came in, until the effect starts."""
    shop.hooked(OnlyKeyed)
    shop.queue({"one": refund("80.00")})
    shop.run()
    restore = backup()
    shop.vote("one")
    shop.run()
    assert (shop.states(), len(shop.calls())) == ({"one": "completed"}, 1)
    restore()
    settled(shop)
    shop.execute("update effects set first_sent_at = first_sent_at - interval '30 h'")
    shop.vote("one", by="lars")
    shop.run_again(2)
    assert (shop.states(), len(shop.calls())) == ({"one": "dead_lettered"}, 1)


def test_a_proposal_made_anew_does_not_take_the_answer_of_the_old_one(shop: Shop, backup: Backup) -> None:
    """The provider would answer for what its key did, and that was something else."""
    shop.hooked(OnlyKeyed)
    shop.queue({"one": refund(text="TOTAL 20.00 EUR\nTOTAL 30.00 EUR")})
    restore = backup()
    shop.run()
    assert shop.states() == {"one": "completed"}
    restore()
    shop.define(
        extractor=lambda request: toy.toy_model(request.model_copy(update={"text": request.text.splitlines()[-1]}))
    )
    settled(shop)
    assert shop.states() == {"one": "dead_lettered"}


def test_a_start_that_waited_for_a_lock_sees_the_restore(shop: Shop, desk: Desk) -> None:
    """The epoch is read when all locks are held."""
    released(shop, {"one": refund()})
    lease, start = desk.claimed(), desk.first_start("one")
    with shop.connect() as holder, ThreadPoolExecutor(1) as pool:
        holder.execute(sa.text("select from requests for update"))
        starting = pool.submit(desk.start, lease, start)
        time.sleep(1)
        declare_restored(shop.url, desk.session, WHY)
        holder.rollback()
        assert starting.result().refusal == "restored"


def test_a_restore_while_what_was_done_is_looked_up_begins_anew(shop: Shop, desk: Desk) -> None:
    """What was found out is of the restore before: the request waits to be looked up for this one as well."""
    shop.hooked(OnlyAsked)
    released(shop, {"one": refund()})
    declare_restored(shop.url, desk.session, WHY)
    asked: list[str] = []

    def again(key: str) -> None:
        if not asked:
            declare_restored(shop.url, desk.session, "and once more")
        asked.append(key)

    shop.hooked(OnlyAsked, look_up=again)
    let_absence_count(shop)
    shop.run()
    assert (waiting(shop), shop.calls()) == (1, [])
    let_absence_count(shop)
    shop.run_again()
    assert len([key for key in asked if "order.refund" in key]) == 2
    assert (shop.states(), len(shop.calls())) == ({"one": "completed"}, 1)
