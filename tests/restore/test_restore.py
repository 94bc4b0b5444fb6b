"""A store that was restored from a backup has forgotten what was done since; none of it is done again."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, ClassVar

import pytest

from ops.process_batch import STEPS
from policies.outcomes import Done, Refused, Semantics
from tests.operator.desk import Desk
from tests.ops import toy
from tests.ops.passes import Shop, refund
from tests.ops.test_blind_provider import SurelyTell
from tests.ops.tills import HookedTill
from tests.restore.conftest import Backup
from tests.restore.restoring import Blind, OnlyAsked, dying, no_answer, released, settled, waiting


class OnlyKeyed(HookedTill):
    """A till that honours keys, for a day, and cannot be asked."""

    semantics: ClassVar[Semantics] = Semantics(honours_key=timedelta(days=1), timeout=timedelta(seconds=1))

    def look_up(self, key: str) -> Done | None:
        raise AssertionError(f"{key} was looked up, which this provider does not offer")


@pytest.mark.parametrize("till", [HookedTill, OnlyAsked])
def test_what_was_done_since_the_backup_is_adopted(shop: Shop, backup: Backup, till: type[HookedTill]) -> None:
    """It is found by its key and recorded as done, in ledger and outbox; no second call is made."""
    shop.hooked(till)
    released(shop, {"one": refund()})
    restore = backup()
    shop.run()
    assert shop.states() == {"one": "completed"}
    restore()
    assert shop.states() == {"one": "executing"}
    settled(shop)
    assert shop.states() == {"one": "completed"}
    assert len(shop.calls()) == len(shop.effects()) == 1
    assert [kind for kind in shop.events("one") if "effect" in kind] == ["effect.suspected", "effect.done"]
    assert len(shop.rows("select from outbox where type = 'effect.done'")) == 1
    assert waiting(shop) == 0
    shop.assert_ledger_intact()


@pytest.mark.parametrize("till", [HookedTill, OnlyAsked])
def test_what_was_not_done_is_done_once_it_is_known(shop: Shop, backup: Backup, till: type[HookedTill]) -> None:
    """Nothing is started before absence counts; then the request is cleared, and its effect sent as a first try."""
    shop.hooked(till)
    released(shop, {"one": refund()})
    restore = backup()
    restore()
    shop.run()
    toy.make_due(shop.url)
    shop.run(*STEPS[1:])
    assert (shop.states(), shop.calls(), waiting(shop)) == ({"one": "executing"}, [], 1)
    settled(shop)
    assert (shop.states(), len(shop.calls()), waiting(shop)) == ({"one": "completed"}, 1, 0)
    assert "request.cleared" in shop.events("one")
    assert shop.row("select attempts from effects").attempts == 1


def test_the_database_starts_nothing_that_is_not_cleared(shop: Shop, desk: Desk, backup: Backup) -> None:
    """Whatever a worker asks for, and before any run noticed the restore."""
    released(shop, {"one": refund()})
    restore = backup()
    restore()
    until = "clock_timestamp() + interval '1 h'"
    shop.execute(
        f"update requests set lease_token = gen_random_uuid(), lease_until = {until}, rechecked_until = {until}"
    )
    lease = desk.claimed()
    assert lease.requests == []
    lease.token = shop.request("one").lease_token
    assert desk.start(lease, desk.first_start("one")).refusal == "restored"


def test_a_saga_is_followed_to_where_it_was(shop: Shop, backup: Backup) -> None:
    """Each step that was done since is found in its turn; the first that was not is sent."""
    shop.hooked(before=lambda key: None if "customer.tell" not in key else dying())
    released(shop, {"one": refund(say="saga")})
    restore = backup()
    with pytest.raises(KeyboardInterrupt):
        shop.run()
    restore()
    shop.hooked()
    settled(shop)
    assert shop.states() == {"one": "completed"}
    for kind in ("stock.reserve", "order.refund", "customer.tell"):
        assert len(shop.calls(kind)) == len(shop.effects(kind)) == 1


def test_a_saga_with_an_unknown_step_is_followed_beyond_it(shop: Shop, backup: Backup) -> None:
    """The backup held one effect as unknown; what came after it is not sent again either."""
    toy.set_mood(shop.till, "lose the answer", "stock.reserve")
    shop.queue({"one": refund(say="saga")})
    shop.run()
    assert [row.state for row in shop.rows("select state from effects")] == ["unknown"]
    restore = backup()
    toy.set_mood(shop.till, None, "stock.reserve")
    shop.age_effects()
    shop.run_again(2)
    assert shop.states() == {"one": "completed"}
    restore()
    toy.make_due(shop.url)
    settled(shop)
    assert shop.states() == {"one": "completed"}
    assert [len(shop.calls(kind)) for kind in ("stock.reserve", "order.refund", "customer.tell")] == [1, 1, 1]


def test_undos_done_since_are_adopted(shop: Shop, backup: Backup) -> None:
    """A compensation that was under way at the backup is not carried out twice."""
    shop.hooked(OnlyAsked)
    toy.set_mood(shop.till, "refuse", "order.refund")
    shop.queue({"one": refund(say="saga")})
    opened = shop.open()
    for step in STEPS[:-1]:
        opened.carry_out(step)
    restore = backup()
    shop.run()
    assert shop.states() == {"one": "compensated"}
    restore()
    settled(shop)
    assert (shop.states(), len(shop.calls("stock.unreserve"))) == ({"one": "compensated"}, 1)


def test_a_refusal_since_the_backup_is_adopted(shop: Shop, backup: Backup) -> None:
    """A provider that shows what it refused is not asked for it again."""

    class Refusing(HookedTill):
        def look_up(self, key: str) -> Any:
            return Refused("declined", "as before")

    shop.hooked(Refusing)
    released(shop, {"one": refund()})
    restore = backup()
    restore()
    settled(shop)
    assert (shop.states(), shop.calls()) == ({"one": "failed"}, [])


def test_what_only_a_person_can_tell_goes_to_a_person(shop: Shop, desk: Desk, backup: Backup) -> None:
    """Neither key nor look-up: a case says why, and the person's word ends it."""
    shop.hooked(Blind)
    released(shop, {"done": refund(), "not": refund(order="A2")})
    restore = backup()
    shop.run()
    calls = len(shop.calls())
    restore()
    settled(shop)
    assert shop.states() == {"done": "dead_lettered", "not": "dead_lettered"}
    assert len(shop.calls()) == calls
    assert all("after the backup was taken, and the provider cannot tell" in case for case in desk.open_cases())
    for operation, done in (("done", True), ("not", False)):
        key = shop.row(
            "select idempotency_key from effects where request_id = :id", id=desk.id(operation)
        ).idempotency_key
        desk.resolve(key, done=done)
        desk.redrive(operation)
    shop.run_again(2)
    assert shop.states() == {"done": "completed", "not": "completed"}
    assert len(shop.calls()) == calls + 1, "what was not done is sent under a new key"


def test_a_notification_may_be_assumed_done(shop: Shop, backup: Backup) -> None:
    """Where the catalogue says so, and everything before it was done, nobody is asked and nothing is sent."""
    actions = {kind: till for kind, till in shop.workflow.actions.items() if kind is not toy.Tell}
    shop.define(actions={**actions, SurelyTell: Blind(file=str(shop.till))})
    released(shop, {"one": refund(say="saga")})
    restore = backup()
    shop.run()
    restore()
    settled(shop)
    assert (shop.states(), len(shop.calls("customer.tell"))) == ({"one": "completed"}, 1)
    assert "restored" in shop.row("select result from effects where action_type = 'customer.tell'").result["assumed"]


@pytest.mark.parametrize(("age", "state", "calls"), [("0 s", "completed", 2), ("2 d", "dead_lettered", 1)])
def test_a_key_is_sent_again_only_while_it_is_honoured(
    shop: Shop, backup: Backup, age: str, state: str, calls: int
) -> None:
    """No look-up: the provider tells a repeat by its key, unless the request is older than its memory."""
    shop.hooked(OnlyKeyed)
    released(shop, {"one": refund()})
    restore = backup()
    shop.run()
    restore()
    shop.execute(f"update requests set received_at = received_at - interval '{age}'")
    settled(shop)
    assert (shop.states(), len(shop.calls()), len(shop.effects())) == ({"one": state}, calls, 1)


def test_a_look_up_that_kills_its_workers_goes_to_a_person(shop: Shop, backup: Backup) -> None:
    """After so many that took the request alone, nobody tries again."""
    released(shop, {"one": refund()})
    restore = backup()
    restore()
    shop.hooked(look_up=dying)
    for _ in range(6):
        try:
            shop.run_again()
        except KeyboardInterrupt:
            shop.end_leases()
    assert shop.states() == {"one": "dead_lettered"}
    assert "4 workers died on this request alone" in shop.request("one").reason


def test_a_look_up_that_fails_clears_nothing(shop: Shop, backup: Backup) -> None:
    """The request waits; a person sees it once the attempts are used up."""
    released(shop, {"one": refund()})
    restore = backup()
    restore()
    shop.hooked(look_up=no_answer)
    settled(shop)
    assert (shop.states(), shop.calls(), waiting(shop)) == ({"one": "executing"}, [], 1)
    shop.execute("update requests set attempts = 7")
    shop.run_again()
    assert shop.states() == {"one": "dead_lettered"}
