"""Effects that a person settles: by evidence, into the ledger, and never so that one could happen twice unseen."""

from __future__ import annotations

import uuid

import pytest

from ops.reconcile import reconcile
from policies.attempts import MAX_ATTEMPTS
from policies.effects import EffectState
from policies.errors import NotPermitted, NotPossibleNow, RequestRefused
from resources.store.cases import unclear_effects
from resources.store.effects import Outcome, record_outcomes
from resources.store.engine import Duty, engine_for, transaction
from resources.store.operator import resolve_compensation
from tests.operator.desk import EVIDENCE, Desk
from tests.operator.test_dead_letters import busy, no_answer, standing, unknown, use_up_attempts
from tests.ops import toy
from tests.ops.passes import Shop, refund

HAPPENED = EffectState.DONE


def key_of(desk: Desk, action_type: str = "order.refund") -> str:
    """The key of the first effect of a type."""
    [first, *_] = desk.shop.rows(
        "select idempotency_key from effects where action_type = :type order by intent", type=action_type
    )
    return str(first.idempotency_key)


@pytest.mark.parametrize("evidence", ["", "   ", "yes", "  short    "])
def test_no_evidence_no_resolution(shop: Shop, desk: Desk, evidence: str) -> None:
    """A word without a reason is not taken for the provider's."""
    unknown(shop)
    with pytest.raises(RequestRefused):
        desk.resolve(key_of(desk), done=True, evidence=evidence)
    assert desk.effect("order.refund").state == "unknown"


def test_the_database_asks_for_evidence_itself(shop: Shop, desk: Desk) -> None:
    """Whichever of our code is wrong."""
    unknown(shop)
    for function, named in (("resolve_unknown", key_of(desk)), ("resolve_compensation", desk.id("one"))):
        done = "true, " if function == "resolve_unknown" else ""
        with (
            pytest.raises(RequestRefused, match="ten characters"),
            transaction(engine_for(Duty.OPERATOR, shop.url)) as connection,
        ):
            connection.exec_driver_sql(
                f"select {function}(%(session)s, %(named)s, {done}'sure')",
                {"session": desk.session.secret, "named": named},
            )


def test_only_an_operator_resolves(shop: Shop, desk: Desk) -> None:
    """Neither the initiator nor a lead."""
    unknown(shop)
    for session in (desk.sign_in(shop.clerk), desk.signed_in("lena", ["lead"])):
        with pytest.raises(NotPermitted, match="no operator"):
            desk.resolve(key_of(desk), done=True, as_=session)


def test_it_is_listed_with_whom_it_waits_for(shop: Shop, desk: Desk) -> None:
    """First for the runs' own look-up, then, parked, for a person."""
    toy.set_mood(shop.till, "lose the answer")
    shop.hooked(look_up=busy)
    shop.queue({"one": refund()})
    shop.run()
    [found] = unclear_effects(shop.url)
    assert (found.key, found.state, found.waits_for, found.provider) == (
        key_of(desk),
        "unknown",
        "look-up",
        "HookedTill",
    )
    shop.execute("update requests set attempts = 7")
    shop.run_again()
    [found] = unclear_effects(shop.url, "refunds")
    assert found.waits_for == "person"
    assert unclear_effects(shop.url, "other") == []


def test_done_by_a_persons_word_it_counts(shop: Shop, desk: Desk) -> None:
    """The redrive goes on with the next action, calls nothing again, and the ledger holds who said so and why."""
    toy.set_mood(shop.till, "lose the answer", "order.refund")
    shop.hooked(look_up=no_answer)
    shop.queue({"one": refund(say="saga")})
    use_up_attempts(shop)
    desk.resolve(key_of(desk), done=True)
    assert shop.states() == {"one": "dead_lettered"}
    desk.redrive("one")
    shop.run()
    assert shop.states() == {"one": "completed"}
    assert (len(shop.calls()), len(shop.effects("customer.tell"))) == (1, 1)
    [event] = shop.rows(
        "select actor, convert_from(payload, 'UTF8')::json as said from audit_events"
        " where type = 'operator.resolved_unknown'"
    )
    assert event.actor == f"principal:{desk.session.principal_id}"
    assert event.said == {"key": key_of(desk), "was": "unknown", "done": True, "evidence": EVIDENCE}
    shop.assert_ledger_intact()


def test_not_done_by_a_persons_word_it_is_sent_under_a_new_key(shop: Shop, desk: Desk) -> None:
    """The old key is fenced for ever; only a redrive sends the action again."""
    shop.hooked(before=no_answer, look_up=no_answer)
    shop.queue({"one": refund()})
    use_up_attempts(shop)
    first = key_of(desk)
    desk.resolve(first, done=False)
    shop.hooked()
    shop.run_again(2)
    assert shop.calls() == []
    desk.redrive("one")
    shop.run()
    assert shop.states() == {"one": "completed"}
    assert shop.calls() == [f"{first[:-2]}:2"]
    states = shop.rows("select idempotency_key, state from effects order by intent")
    assert states == [(first, "fenced"), (f"{first[:-2]}:2", "done")]


@pytest.mark.parametrize(("done", "state"), [(True, "completed"), (False, "dead_lettered")])
def test_resolved_while_runs_still_ask_it_goes_on(shop: Shop, desk: Desk, done: bool, state: str) -> None:
    """A request that is not parked yet is concluded by the next run: done, or a case that a redrive takes up."""
    toy.set_mood(shop.till, "lose the answer")
    shop.hooked(look_up=no_answer)
    shop.queue({"one": refund()})
    shop.run()
    desk.resolve(key_of(desk), done=done)
    shop.run()
    assert (shop.states(), len(shop.calls())) == ({"one": state}, 1)
    assert standing(shop) == (not done)


def test_a_settled_effect_is_not_resolved(shop: Shop, desk: Desk) -> None:
    """Only what nobody knows, or what is late; an unknown key is told so."""
    shop.queue({"one": refund()})
    shop.run()
    with pytest.raises(NotPossibleNow, match="the effect is done"):
        desk.resolve(key_of(desk), done=False)
    with pytest.raises(RequestRefused, match="no effect with this key"):
        desk.resolve("no:such:key", done=True)


def test_resolved_while_a_worker_looks_it_up_the_persons_word_stands(shop: Shop, desk: Desk) -> None:
    """What the worker found comes late: it is kept, and since it contradicts the word, a case."""
    toy.set_mood(shop.till, "lose the answer")
    shop.queue({"one": refund()})
    shop.run()
    toy.set_mood(shop.till, None)
    shop.hooked(look_up=lambda key: desk.resolve(key, done=False))
    toy.make_due(shop.url)
    shop.run(reconcile)
    assert desk.effect("order.refund").state == "late"
    assert shop.events("one").count("effect.late_report") == 1
    shop.run_again()
    assert (shop.states(), standing(shop), len(shop.calls())) == ({"one": "dead_lettered"}, 1, 1)


def compensation_failed(shop: Shop) -> None:
    """The refund is refused, and so is the undo of the reservation."""
    toy.set_mood(shop.till, "refuse", "order.refund")
    toy.set_mood(shop.till, "refuse", "stock.unreserve")
    shop.queue({"one": refund(say="saga")})
    shop.run()
    assert shop.states() == {"one": "compensation_failed"}


def test_what_a_person_restored_is_compensated(shop: Shop, desk: Desk) -> None:
    """By an operator's evidence; the case is closed and the story tells it."""
    compensation_failed(shop)
    assert standing(shop) == 1
    resolve_compensation(shop.url, desk.session, desk.id("one"), EVIDENCE)
    assert (shop.states(), standing(shop)) == ({"one": "compensated"}, 0)
    assert shop.request("one").reason == f"restored by hand: {EVIDENCE}"
    assert shop.events("one")[-1] == "operator.resolved_compensation"
    with pytest.raises(NotPossibleNow, match="compensated"):
        resolve_compensation(shop.url, desk.session, desk.id("one"), EVIDENCE)
    with pytest.raises(RequestRefused, match="no such request"):
        resolve_compensation(shop.url, desk.session, uuid.uuid4(), EVIDENCE)
    shop.assert_ledger_intact()


def test_what_nobody_restores_can_be_given_up(shop: Shop, desk: Desk) -> None:
    """The discard says that the reservation stays."""
    compensation_failed(shop)
    assert desk.discard("one")[0].left_done == shop.effects("stock.reserve")
    assert shop.states() == {"one": "failed"}


def blind_undo(shop: Shop) -> None:
    """Nobody can tell what became of the undo: its answer was lost, and no look-up ever answers."""
    toy.set_mood(shop.till, "refuse", "order.refund")
    toy.set_mood(shop.till, "lose the answer", "stock.unreserve")
    shop.hooked(look_up=no_answer)
    shop.queue({"one": refund(say="saga")})
    shop.run()
    assert shop.states() == {"one": "compensating"}
    shop.execute("update requests set attempts = 7")
    shop.run_again()


def test_an_undo_that_nobody_can_tell_of_is_a_persons(shop: Shop, desk: Desk) -> None:
    """Its look-ups are bounded; then it is a failed compensation, which is not restored while it is unknown."""
    blind_undo(shop)
    assert (shop.states(), standing(shop)) == ({"one": "compensation_failed"}, 1)
    with pytest.raises(NotPossibleNow, match="resolve it first"):
        resolve_compensation(shop.url, desk.session, desk.id("one"), EVIDENCE)
    desk.resolve(key_of(desk, "stock.unreserve"), done=True)
    resolve_compensation(shop.url, desk.session, desk.id("one"), EVIDENCE)
    assert shop.states() == {"one": "compensated"}


@pytest.mark.parametrize(("done", "state"), [(True, "compensated"), (False, "compensation_failed")])
def test_an_undo_resolved_while_runs_still_ask_is_concluded(shop: Shop, desk: Desk, done: bool, state: str) -> None:
    """Done, it is undone; not done, its key is spent and a person restores what is left."""
    toy.set_mood(shop.till, "refuse", "order.refund")
    toy.set_mood(shop.till, "lose the answer", "stock.unreserve")
    shop.hooked(look_up=no_answer)
    shop.queue({"one": refund(say="saga")})
    shop.run()
    desk.resolve(key_of(desk, "stock.unreserve"), done=done)
    shop.run()
    assert (shop.states(), len(shop.calls("stock.unreserve"))) == ({"one": state}, 1)
    shop.assert_ledger_intact()


def test_a_worker_that_lost_its_lease_settles_nothing(shop: Shop, desk: Desk) -> None:
    """An outcome under a token that is no longer the request's is not recorded, whatever it says."""
    unknown(shop)
    with transaction(engine_for(Duty.WORKER, shop.url)) as connection:
        assert record_outcomes(connection, uuid.uuid4(), [Outcome(desk.id("one"), 1, key_of(desk), HAPPENED)]) == set()
    assert desk.effect("order.refund").state == "unknown"


@pytest.mark.parametrize(
    ("action_type", "state"), [("order.refund", "dead_lettered"), ("stock.unreserve", "compensation_failed")]
)
def test_a_provider_that_never_answers_and_never_did_it_is_tried_a_bounded_number_of_times(
    shop: Shop, desk: Desk, action_type: str, state: str
) -> None:
    """Each time it is looked up, found absent and sent again under its key; at last a person is asked instead."""
    sent: list[str] = []

    def lose(key: str) -> None:
        if action_type in desk.shop.row("select action_type from effects where idempotency_key = :key", key=key):
            sent.append(key)
            raise TimeoutError("no answer")

    shop.hooked(before=lose)
    if action_type != "order.refund":
        toy.set_mood(shop.till, "refuse", "order.refund")
    shop.queue({"one": refund(say="saga")})
    shop.run()
    for _ in range(MAX_ATTEMPTS + 2):
        shop.age_effects()
        shop.execute("update providers set open_until = null")  # which only slow it down
        shop.run_again()
    assert (shop.states(), len(sent), len(set(sent))) == ({"one": state}, MAX_ATTEMPTS - 1, 1)
    assert f"attempt {MAX_ATTEMPTS} of {MAX_ATTEMPTS}" in desk.open_cases()[0]
    assert desk.effect(action_type).state == "intended"
