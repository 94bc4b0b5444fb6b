"""Dead letters: a redrive is a new governed attempt that keeps what is done; a discard gives up; history stays."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from policies.errors import NotExecuted, NotPermitted
from resources.store.batches import batch_standing
from resources.store.cases import dead_letters
from resources.store.engine import Duty, engine_for
from resources.store.operator import Cancelled, Leaving
from tests.operator.desk import Desk
from tests.operator.test_cancel import WITH_CLAIM, as_dead_lettered, failing
from tests.ops import toy
from tests.ops.passes import Shop, refund

REFUSING = toy.POLICY.replace("low: auto", "low: refuse")
ASKING = toy.POLICY.replace("low: auto", "low: {review: {roles: [lead], people: 1, expires_after: 2d}}")


def told(shop: Shop) -> None:
    """Everything is done but the notification, which the provider refuses: a dead letter past the pivot."""
    toy.set_mood(shop.till, "refuse", "customer.tell")
    shop.queue({"one": refund(say="saga")})
    shop.run()
    assert shop.states() == {"one": "dead_lettered"}
    toy.set_mood(shop.till, None, "customer.tell")


def stuck(shop: Shop) -> None:
    """The reservation is done, the refund is certainly not and its attempts are used up: before the pivot."""
    shop.hooked(before=busy)
    shop.queue({"one": refund(say="saga")})
    use_up_attempts(shop)
    shop.hooked()


def use_up_attempts(shop: Shop) -> None:
    """Try for the first time, and then for the last."""
    shop.run()
    assert shop.states() == {"one": "executing"}
    shop.execute("update requests set attempts = 7")
    shop.run_again()
    assert shop.states() == {"one": "dead_lettered"}


def busy(key: str) -> None:
    """The provider takes no refund now, and no question."""
    if "stock" not in key:
        raise NotExecuted("busy")


def no_answer(_key: str) -> None:
    """The provider cannot be asked now."""
    raise TimeoutError("no answer")


def standing(shop: Shop) -> int:
    """Open cases of the batch: while there are any it is red."""
    with engine_for(Duty.AUDITOR, shop.url).connect() as connection:
        return batch_standing(connection, shop.workflow.name, shop.batch).open_cases


def test_a_redrive_is_a_new_attempt_and_its_history_stays(shop: Shop, desk: Desk) -> None:
    """The request begins anew, its case is closed with who and why, and the batch turns green again."""
    as_dead_lettered(shop)
    assert standing(shop) == 1
    assert desk.redrive("one") == [Leaving(desk.id("one"), None, [])]
    assert shop.states() == {"one": "received"}
    shop.run()
    shop.vote("one")
    shop.run()
    assert (shop.states(), standing(shop)) == ({"one": "completed"}, 0)
    [letter] = dead_letters(shop.url, closed=True)
    assert (letter.step, letter.closed_by, letter.resolution) == (
        "extract",
        "olga",
        "redriven: told so by the customer",
    )
    assert "operator.redriven" in shop.events("one")
    shop.assert_ledger_intact()


def test_a_redrive_goes_by_the_policy_of_now(shop: Shop, desk: Desk) -> None:
    """What was automatic when it was parked and is refused today is not executed."""
    stuck_alone(shop)
    shop.set_policy(REFUSING)
    desk.redrive("one")
    shop.run()
    assert (shop.states(), shop.effects()) == ({"one": "rejected"}, [])


def test_a_redrive_is_validated_again(shop: Shop, desk: Desk) -> None:
    """A permission that was taken away meanwhile counts."""
    stuck_alone(shop)
    shop.execute("update principals set roles = '{}' where name = 'shop'")
    desk.redrive("one")
    shop.run()
    assert (shop.states(), shop.effects()) == ({"one": "rejected"}, [])


def stuck_alone(shop: Shop, amount: str = "20.00") -> None:
    """One refund that is certainly not done and has no attempts left."""
    shop.hooked(before=busy)
    shop.queue({"one": refund(amount)})
    if amount != "20.00":
        shop.run()
        shop.vote("one")
    use_up_attempts(shop)
    shop.hooked()


def test_a_redrive_needs_a_new_approval(shop: Shop, desk: Desk) -> None:
    """The votes of the attempt before count no longer; the same person is asked again."""
    stuck_alone(shop, "80.00")
    desk.redrive("one")
    shop.run()
    assert (shop.states(), shop.calls()) == ({"one": "awaiting_approval"}, [])
    shop.vote("one")
    shop.run()
    assert (shop.states(), len(shop.effects())) == ({"one": "completed"}, 1)
    assert shop.rows("select count(*) from approval_votes group by approval_id") == [(1,), (1,)]


def test_a_denied_redrive_is_not_executed(shop: Shop, desk: Desk) -> None:
    """A denial of the second attempt ends it, though the first was approved."""
    stuck_alone(shop, "80.00")
    desk.redrive("one")
    shop.run()
    shop.vote("one", vote="deny")
    shop.run_again()
    assert (shop.states(), shop.effects()) == ({"one": "rejected"}, [])


def test_what_is_done_is_not_repeated(shop: Shop, desk: Desk) -> None:
    """The redrive goes on behind the last done action; what was refused gets a new intent and so a new key."""
    told(shop)
    [refused] = shop.calls("customer.tell")
    assert desk.redrive("one")[0].left_done == [*shop.effects("stock.reserve"), *shop.effects()]
    shop.run()
    assert shop.states() == {"one": "completed"}
    assert (len(shop.calls()), len(shop.calls("stock.reserve"))) == (1, 1)
    assert refused.endswith(":1")
    assert shop.effects("customer.tell") == [f"{refused[:-2]}:2"]


def test_what_is_certainly_not_done_keeps_its_key(shop: Shop, desk: Desk) -> None:
    """An effect that is only intended is no refused one: the provider still knows its key as unused."""
    stuck(shop)
    desk.redrive("one")
    shop.run()
    assert shop.states() == {"one": "completed"}
    [key] = shop.effects()
    assert key.endswith("order.refund:1")
    assert len(shop.calls("stock.reserve")) == 1
    [effect] = shop.rows("select round from effects where idempotency_key = :key", key=key)
    assert effect.round == 2, "started by the authority of the new round"


def test_nothing_left_to_do_is_concluded(shop: Shop, desk: Desk) -> None:
    """A request of which everything is done by now completes when it is redriven."""
    told(shop)
    shop.execute("update effects set state = 'late' where action_type = 'customer.tell'")
    desk.resolve(desk.effect("customer.tell").idempotency_key, done=True)
    desk.redrive("one")
    shop.run()
    assert (shop.states(), len(shop.calls("customer.tell"))) == ({"one": "completed"}, 1)


@pytest.mark.parametrize("how", ["policy", "validation", "denied", "expired", "shadow"])
@pytest.mark.parametrize(("before", "after"), [("stuck", "compensated"), ("told", "dead_lettered")])
def test_a_refused_redrive_forgets_nothing_that_is_done(
    shop: Shop, desk: Desk, how: str, before: str, after: str
) -> None:
    """Before the pivot what is done is undone; after it, or in shadow mode, a person finds it in an open case again."""
    shop.set_policy(WITH_CLAIM)
    {"stuck": stuck, "told": told}[before](shop)
    if how == "validation":
        shop.execute("update principals set roles = '{}' where name = 'shop'")
    else:
        text = {"policy": REFUSING, "shadow": WITH_CLAIM.replace("mode: live", "mode: shadow")}.get(how, ASKING)
        shop.set_policy(text)
    desk.redrive("one")
    shop.run()
    if how == "denied":
        shop.vote("one", vote="deny")
    elif how == "expired":
        expire(shop)
    shop.run_again(2)
    assert shop.states() == {"one": "dead_lettered" if how == "shadow" else after}
    undone = shop.states() == {"one": "compensated"}
    assert (len(shop.effects("stock.unreserve")), standing(shop)) == ((1, 0) if undone else (0, 1))
    assert len(shop.rows("select from claims")) == (not undone), "what stands keeps its claim"
    assert shop.calls("customer.tell") == ([] if before == "stuck" else [desk.effect("customer.tell").idempotency_key])
    shop.assert_ledger_intact()


def expire(shop: Shop) -> None:
    """Let the time of every approval request pass."""
    with shop.connect() as connection, connection.begin():
        connection.exec_driver_sql("set local session_replication_role = replica")
        connection.exec_driver_sql(
            "update approval_requests set opened_at = now() - interval '2 h', expires_at = now()"
        )


def test_an_unknown_effect_blocks_a_redrive_until_it_is_resolved(shop: Shop, desk: Desk) -> None:
    """Nobody may try again while the first try may have worked."""
    unknown(shop)
    [blocked] = desk.redrive("one")
    assert blocked.obstacle is not None
    assert "resolve it first" in blocked.obstacle
    assert shop.states() == {"one": "dead_lettered"}
    desk.resolve(desk.effect("order.refund").idempotency_key, done=False)
    assert desk.redrive("one")[0].obstacle is None


def unknown(shop: Shop) -> None:
    """A refund of which nobody can tell: no look-up ever answers."""
    toy.set_mood(shop.till, "lose the answer")
    shop.hooked(look_up=busy)
    shop.queue({"one": refund()})
    use_up_attempts(shop)


def test_redriven_twice_at_once_it_is_tried_once(shop: Shop, desk: Desk) -> None:
    """Two operators on two connections: one redrives, the other is told that it is no dead letter any more."""
    as_dead_lettered(shop)
    barrier = Barrier(2)

    def redrive(_: int) -> str | None:
        barrier.wait()
        return desk.redrive("one")[0].obstacle

    with ThreadPoolExecutor(2) as threads:
        assert sorted(map(str, threads.map(redrive, range(2)))) == ["None", "it is received"]
    assert (shop.request("one").round, shop.events("one").count("operator.redriven")) == (2, 1)


@pytest.mark.parametrize("act", ["redrive", "discard"])
def test_a_dry_run_changes_nothing(shop: Shop, desk: Desk, act: str) -> None:
    """It says what would happen to each, and leaves every row as it was."""
    shop.define(extractor=failing)
    shop.queue({"one": refund(), "two": refund(order="A2")})
    shop.run()
    shop.queue({"three": refund(order="A3")})
    tables = ("requests", "dead_letters", "audit_events", "claims")
    before = [shop.rows(f"select * from {table}") for table in tables]
    answers = getattr(desk, act)("one", "two", "three", dry_run=True)
    assert sorted(str(one.obstacle) for one in answers) == ["None", "None", "it is received"]
    assert [shop.rows(f"select * from {table}") for table in tables] == before


def test_many_at_once_and_only_those_that_may(shop: Shop, desk: Desk) -> None:
    """One that may not be redriven stops no other."""
    shop.define(extractor=failing)
    shop.queue({"one": refund(), "two": refund(order="A2"), "three": refund(order="A3", say="abstain")})
    shop.run()
    shop.define(extractor=toy.toy_model)
    shop.queue({"four": refund(order="A4")})
    desk.redrive("one", "two", "three", "four")
    shop.run()
    assert shop.states() == {"one": "completed", "two": "completed", "three": "needs_review", "four": "completed"}


@pytest.mark.parametrize("act", ["redrive", "discard"])
def test_only_an_operator_may(shop: Shop, desk: Desk, act: str) -> None:
    """Neither its initiator nor a lead, and not even dry."""
    as_dead_lettered(shop)
    for session in (desk.sign_in(shop.clerk), desk.signed_in("lena", ["lead"])):
        for dry_run in (True, False):
            with pytest.raises(NotPermitted, match="no operator"):
                getattr(desk, act)("one", dry_run=dry_run, as_=session)
    assert shop.states() == {"one": "dead_lettered"}


def test_a_discard_gives_up_and_frees_what_was_claimed(shop: Shop, desk: Desk) -> None:
    """Nothing was done, so nothing is claimed any more; the batch turns green; the case says who and why."""
    shop.set_policy(WITH_CLAIM)
    stuck_alone(shop)
    assert len(shop.rows("select from claims")) == 1
    assert desk.discard("one") == [Leaving(desk.id("one"), None, [])]
    assert (shop.states(), standing(shop), shop.rows("select from claims")) == ({"one": "failed"}, 0, [])
    assert desk.effect("order.refund").state == "fenced", "never to be sent any more"
    [letter] = dead_letters(shop.url, closed=True)
    assert (letter.closed_by, letter.resolution) == ("olga", "discarded: told so by the customer")
    shop.run_again()
    assert shop.effects() == []
    shop.assert_ledger_intact()


def test_a_discard_says_what_it_leaves_done_and_keeps_its_claim(shop: Shop, desk: Desk) -> None:
    """What was paid stays paid, so an equal request must still meet its claim."""
    shop.set_policy(WITH_CLAIM)
    told(shop)
    left = [*shop.effects("stock.reserve"), *shop.effects()]
    assert desk.discard("one", dry_run=True) == desk.discard("one") == [Leaving(desk.id("one"), None, left)]
    assert (shop.states(), standing(shop)) == ({"one": "failed"}, 0)
    shop.queue({"again": refund()})
    shop.run()
    assert shop.states()["again"] == "rejected"


def test_a_discard_waits_for_an_unknown_effect(shop: Shop, desk: Desk) -> None:
    """Nobody gives up what may have happened without saying what happened."""
    unknown(shop)
    assert "resolve it first" in str(desk.discard("one")[0].obstacle)
    assert shop.states() == {"one": "dead_lettered"}


def test_before_the_pivot_it_can_be_cancelled_instead(shop: Shop, desk: Desk) -> None:
    """Then what was done is undone, and the case is closed by it."""
    stuck(shop)
    assert desk.cancel("one") is Cancelled.COMPENSATING
    shop.run()
    assert (shop.states(), standing(shop)) == ({"one": "compensated"}, 0)
    assert (shop.effects(), len(shop.effects("stock.unreserve"))) == ([], 1)


def test_what_is_to_be_cancelled_is_not_redriven(shop: Shop, desk: Desk) -> None:
    """A redrive of many at once does not undo somebody's cancellation."""
    toy.set_mood(shop.till, "lose the answer", "stock.reserve")
    shop.hooked(look_up=no_answer)
    shop.queue({"one": refund(say="saga")})
    shop.run()
    assert desk.cancel("one") is Cancelled.UNCERTAIN
    use_up_attempts(shop)
    desk.resolve(desk.effect("stock.reserve").idempotency_key, done=True)
    assert "failsafe cancel" in str(desk.redrive("one")[0].obstacle)
    assert desk.cancel("one") is Cancelled.COMPENSATING
    shop.run()
    assert (shop.states(), shop.calls(), len(shop.effects("stock.unreserve"))) == ({"one": "compensated"}, [], 1)


def test_a_worker_cannot_take_a_request_out_of_the_dead_letters(shop: Shop) -> None:
    """Parked work is left by people's acts alone, whichever of our code is wrong."""
    as_dead_lettered(shop)
    with (
        pytest.raises(Exception, match="no transition from dead_lettered"),
        engine_for(Duty.WORKER, shop.url).begin() as connection,
    ):
        connection.exec_driver_sql(
            "update requests set state = 'received', last_event = 'redriven', state_seq = state_seq + 1"
        )


def test_a_redrive_that_fails_again_is_a_new_case(shop: Shop, desk: Desk) -> None:
    """The old one stays closed; both are told."""
    as_dead_lettered(shop)
    shop.define(extractor=failing)
    desk.redrive("one")
    shop.run()
    assert [letter.resolution is None for letter in dead_letters(shop.url, closed=True)] == [False, True]
