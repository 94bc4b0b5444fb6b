"""Compensation in the store: last first, nothing twice, bounded, and whatever cannot be undone is a person's."""

from __future__ import annotations

import re
import uuid
from datetime import timedelta
from typing import Annotated, Any, ClassVar

import pytest
from pydantic import Field, field_validator

from ops.process_batch import STEPS
from policies.actions import Action, Authority
from policies.errors import DefinitionError, NotExecuted
from policies.outcomes import Done, Semantics
from policies.proposals import Evidence, Proposal, propose
from policies.states import State
from resources.store.claim import release
from resources.store.effects import Start
from resources.store.engine import Duty, engine_for, transaction
from resources.store.operator import Cancelled
from resources.store.pauses import Scope
from tests.operator.desk import Desk
from tests.operator.test_dead_letters import no_answer, standing
from tests.operator.test_unknown import key_of
from tests.ops import toy
from tests.ops.passes import Shop, refund
from tests.ops.tills import Hook, HookedTill, hook


def no_answer_to(end: str) -> Hook:
    """No answer to a call whose key ends so."""

    def lose(key: str) -> None:
        if key.endswith(end):
            no_answer(key)

    return lose


def not_now_for(end: str) -> Hook:
    """The provider does not take a call whose key ends so."""

    def refuse(key: str) -> None:
        if key.endswith(end):
            raise NotExecuted("busy")

    return refuse


class Unhold(Action, name="stock.unhold", reversible=False):
    """Undo of a hold."""

    order_id: str


class Hold(Action, name="stock.hold", reversible=True, undo=Unhold):
    """Another step that can be undone."""

    order_id: Annotated[str, Authority(record="orders")]


def reserve_hold_refund(request: toy.RefundRequest) -> Any:
    """Two steps that can be undone, and then the refund."""
    return with_refund(request, toy.Reserve, Hold)


def with_refund(request: toy.RefundRequest, *steps: type[Action]) -> Proposal:
    """These steps for the order, and then the refund."""
    order = Evidence("order_id", "order_id", request.order_id)
    refunding = toy.toy_model(request)
    assert isinstance(refunding, Proposal)
    before = [propose(step, order_id=request.order_id, evidence=[order]) for step in steps]
    return Proposal((*before, *refunding.actions))


def two_to_undo(shop: Shop) -> None:
    """A request whose refund is refused after two steps that can be undone."""
    shop.set_policy(toy.POLICY.replace("{order.refund: [clerk],", "{order.refund: [clerk], stock.hold: [clerk],"))
    till = HookedTill(file=str(shop.till))
    shop.define(extractor=reserve_hold_refund, actions={**shop.workflow.actions, Hold: till})
    toy.set_mood(shop.till, "refuse", "order.refund")
    shop.queue({"one": refund()})


def until_compensation(shop: Shop) -> None:
    """A pass without its last step."""
    opened = shop.open()
    for step in STEPS[:-1]:
        opened.carry_out(step)


def test_what_was_done_last_is_undone_first(shop: Shop) -> None:
    """Both reservations are undone, in reverse, each once and under its own key; the refund never was."""
    sent: list[str] = []
    two_to_undo(shop)
    shop.hooked(before=sent.append)
    shop.run()
    assert shop.states() == {"one": "compensated"}
    assert [key.split(":", 2)[2] for key in sent] == [
        "1:stock.reserve:1",
        "2:stock.hold:1",
        "3:order.refund:1",
        "2:stock.hold:1:undo",
        "1:stock.reserve:1:undo",
    ]
    [concluded] = [said for kind, said in shop.ledger("one") if kind == "request.concluded" and "buckets" in said]
    assert concluded["buckets"] == {"1:stock.reserve": "compensated", "2:stock.hold": "compensated"}


def test_the_database_keeps_the_order_itself(shop: Shop, desk: Desk) -> None:
    """An undo of the first while the second stands, one of what was never done, or one twice: none is started."""
    two_to_undo(shop)
    until_compensation(shop)
    lease = desk.claimed(State.COMPENSATING)
    first = Start(desk.id("one"), 1, b"\0" * 32, {"undo": None}, kind="compensation")
    never = Start(desk.id("one"), 3, b"\0" * 32, {"undo": None}, kind="compensation")
    assert desk.start(lease, first).refusal == "later_action_open"
    assert desk.start(lease, never).refusal == "nothing_to_undo"
    with transaction(engine_for(Duty.WORKER, shop.url)) as connection:
        release(connection, lease, [desk.id("one")])
    toy.make_due(shop.url)
    shop.hooked(before=not_now_for("1:stock.reserve:1:undo"))
    shop.run()
    toy.make_due(shop.url)
    lease = desk.claimed(State.COMPENSATING)
    second = Start(desk.id("one"), 2, b"\0" * 32, {"undo": None}, kind="compensation")
    assert desk.start(lease, second).refusal == "effect_done"


def test_the_first_undo_that_is_refused_stops_the_rest(shop: Shop, desk: Desk) -> None:
    """What comes before it stays as it is, and the case says what is left in which bucket."""
    two_to_undo(shop)
    toy.set_mood(shop.till, "refuse", "stock.unhold")
    shop.run()
    assert (shop.states(), shop.calls("stock.unreserve")) == ({"one": "compensation_failed"}, [])
    assert "2:stock.hold:1:undo was refused: declined" in desk.open_cases()[0]
    left = [*shop.effects("stock.reserve"), *shop.effects("stock.hold")]
    assert desk.discard("one", dry_run=True)[0].left_done == left


class BlindTill(HookedTill):
    """A till that knows nothing of keys and cannot be asked."""

    semantics: ClassVar[Semantics] = Semantics(timeout=timedelta(seconds=1), concurrency=1)


def test_an_undo_that_may_have_happened_at_a_blind_provider_is_a_persons(shop: Shop, desk: Desk) -> None:
    """It is not sent a second time: parked as a failed compensation, with its own case, and the run goes on."""
    made = BlindTill(file=str(shop.till))
    hook(made, "after", no_answer_to(":undo"))
    shop.define(actions={**shop.workflow.actions, toy.Unreserve: made})
    toy.set_mood(shop.till, "refuse", "order.refund")
    shop.queue({"one": refund(say="saga")})
    shop.run()
    assert desk.effect("stock.unreserve").provider == "BlindTill"
    shop.age_effects()
    shop.queue({"two": refund(order="A2", say="abstain")})
    shop.run_again()
    assert shop.states() == {"one": "compensation_failed", "two": "needs_review"}
    assert (len(shop.calls("stock.unreserve")), standing(shop)) == (1, 1)


def test_a_pause_of_the_provider_of_the_undo_holds_it(shop: Shop, desk: Desk) -> None:
    """The undo goes by the provider that carries it out, not by that of what it undoes."""
    shop.define(actions={**shop.workflow.actions, toy.Unreserve: BlindTill(file=str(shop.till))})
    toy.set_mood(shop.till, "refuse", "order.refund")
    shop.queue({"one": refund(say="saga")})
    until_compensation(shop)
    assert desk.pause(Scope.PROVIDER, "BlindTill").held_back == 1
    shop.run_again()
    assert (shop.states(), shop.calls("stock.unreserve")) == ({"one": "compensating"}, [])
    desk.resume(Scope.PROVIDER, "BlindTill")
    assert desk.pause(Scope.PROVIDER, "HookedTill").held_back == 0
    shop.run_again()
    assert shop.states() == {"one": "compensated"}


def test_an_undo_that_kills_every_worker_is_a_persons(shop: Shop, desk: Desk) -> None:
    """Crashes on a compensation are bounded as they are forward."""
    toy.set_mood(shop.till, "refuse", "order.refund")
    sent: list[str] = []

    def kill(key: str) -> None:
        if key.endswith(":undo"):
            sent.append(key)
            raise SystemExit("out of memory")

    shop.hooked(before=kill)
    shop.queue({"one": refund(say="saga")})
    while len(sent) < 4:
        with pytest.raises(SystemExit):
            shop.run_again()
        shop.end_leases()
        shop.age_effects()
    shop.run_again()
    assert (shop.states(), len(sent), standing(shop)) == ({"one": "compensation_failed"}, 4, 1)
    assert "workers died on this request alone" in desk.open_cases()[0]


class Unbook(Action, name="room.unbook", reversible=False):
    """Gives a room back, by the provider's own number of the booking."""

    reference: str


class Book(Action, name="room.book", reversible=True, undo=Unbook):
    """Takes a room."""

    order_id: Annotated[str, Authority(record="orders")]


def book_and_refund(request: toy.RefundRequest) -> Any:
    """A booking and a refund."""
    return with_refund(request, Book)


def test_an_undo_that_cannot_be_written_down_stops_no_other(shop: Shop, desk: Desk) -> None:
    """A person said that it was done but the provider's number for it is not known: a case; its neighbour is undone."""
    till = HookedTill(file=str(shop.till))
    shop.set_policy(toy.POLICY.replace("stock.reserve: [clerk], customer.tell: [clerk]", "room.book: [clerk]"))
    shop.define(actions={Book: till, toy.Refund: till}, extractor=book_and_refund)
    shop.queue({"one": refund(), "two": refund(order="A2")})
    lost = str(desk.id("one"))
    shop.hooked(after=no_answer_to(f"{lost}:1:room.book:1"), look_up=no_answer)
    toy.set_mood(shop.till, "refuse", "order.refund")
    shop.run()
    [key] = [one for one in shop.effects("room.book") if lost in one]
    desk.resolve(key, done=True)
    shop.hooked()
    shop.run_again(2)
    assert shop.states() == {"one": "compensation_failed", "two": "compensated"}
    assert "room.unbook cannot undo it: reference" in desk.open_cases()[0]


def test_code_that_cannot_read_what_was_begun_is_a_persons_case(shop: Shop, desk: Desk) -> None:
    """A version that is no longer carried: what an effect was begun for is a dead letter, the rest needs review."""
    shop.queue({"begun": refund(say="saga"), "new": refund("80.00", "A2")})
    shop.hooked(before=no_answer_to("order.refund:1"), look_up=no_answer)
    shop.run()
    shop.vote("new")
    desk.resolve(key_of(desk), done=False)
    shop.hooked()
    shop.define(version="2")
    shop.run_again()
    assert shop.states() == {"begun": "dead_lettered", "new": "needs_review"}
    assert desk.cancel("begun") is Cancelled.COMPENSATING
    shop.define(carries=("1",))
    shop.run_again()
    assert (shop.states()["begun"], len(shop.effects("stock.unreserve"))) == ("compensated", 1)


def test_a_late_reversible_effect_is_never_called_clean(shop: Shop, desk: Desk) -> None:
    """A request with one is not compensated by a run: a person resolves it first."""
    two_to_undo(shop)
    until_compensation(shop)
    with shop.connect() as connection, connection.begin():
        connection.exec_driver_sql("set local session_replication_role = replica")
        connection.exec_driver_sql("update effects set state = 'late' where action_id = '1:stock.reserve'")
    shop.run()
    assert (shop.states(), len(shop.calls("stock.unhold"))) == ({"one": "compensation_failed"}, 1)
    assert shop.calls("stock.unreserve") == []
    assert "'1:stock.reserve': 'unresolved'" in desk.open_cases()[0]


class Unlight(Action, name="lamp.unlight", reversible=False):
    """Needs what its action does not have."""

    lamp: str
    colour: str


class Light(Action, name="lamp.light", reversible=True, undo=Unlight):
    """Lights a lamp."""

    lamp: str


class Unfit(Action, name="lamp.unfit", reversible=False):
    """Takes shorter names than its action, which refuses none."""

    lamp: Annotated[str, Field(max_length=3)]


class Fit(Action, name="lamp.fit", reversible=True, undo=Unfit):
    """Fits a lamp of any name."""

    lamp: str


class Unnumber(Action, name="lamp.unnumber", reversible=False):
    """Takes the provider's own id for a number."""

    reference: int


class Number(Action, name="lamp.number", reversible=True, undo=Unnumber):
    """Numbers a lamp."""

    lamp: str


class Undim(Action, name="lamp.undim", reversible=False):
    """Is choosy about lamps."""

    lamp: str

    @field_validator("lamp")
    @classmethod
    def must_be_red(cls, lamp: str) -> str:
        """Refuses what the action took."""
        if lamp != "red":
            raise ValueError("not red")
        return lamp


class Dim(Action, name="lamp.dim", reversible=True, undo=Undim):
    """Dims any lamp."""

    lamp: str


class Lamp(Action, name="lamp.any", reversible=False):
    """What both of a pair inherit."""

    lamp: Annotated[str, Field(max_length=30)]

    @field_validator("lamp")
    @classmethod
    def must_be_named(cls, lamp: str) -> str:
        """Refuses a lamp without a name."""
        if not lamp.strip():
            raise ValueError("no name")
        return lamp


class Unhang(Lamp, name="lamp.unhang", reversible=False):
    """Takes what its action takes, and the provider's own id."""

    reference: str


class Hang(Lamp, name="lamp.hang", reversible=True, undo=Unhang):
    """Hangs a lamp."""


class AnyTill(HookedTill):
    def execute(self, action: Action, key: str) -> Done:
        return Done(key)


def test_a_definition_whose_undo_does_not_fit_is_refused(shop: Shop) -> None:
    """It is found when the location loads, not when the undo is needed."""
    till = AnyTill(file=str(shop.till))
    for action, problem in (
        (Light, "lamp.unlight needs colour, which the action does not have"),
        (Fit, "lamp.unfit takes lamp over but limits it"),
        (Number, "lamp.unnumber takes the provider's own id, which is any text"),
        (Dim, "lamp.undim has a validator of its own, Undim.must_be_red"),
    ):
        with pytest.raises(DefinitionError, match=re.escape(problem)):
            shop.define(actions={**shop.workflow.actions, action: till})
    with pytest.raises(DefinitionError, match=r"lamp\.hang is not named, so nobody could initiate it"):
        shop.define(actions={**shop.workflow.actions, Hang: till})  # nothing is wrong with its undo


def named_action(name: str) -> type[Action]:
    """An action class of this type name."""

    class Named(Action, name=name, reversible=False):
        lamp: str

    return Named


def test_a_type_name_that_no_key_has_room_for_is_refused(shop: Shop) -> None:
    """The longest key that any proposal could need fits; one character more does not load."""
    till = AnyTill(file=str(shop.till))
    room = 255 - len(f"{shop.workflow.name}:{uuid.UUID(int=0)}:20::999999:undo")
    with pytest.raises(DefinitionError, match="is not named, so nobody could initiate it"):
        shop.define(
            actions={**shop.workflow.actions, named_action("a" * room): till}
        )  # nothing is wrong with its length
    with pytest.raises(DefinitionError, match=f"has {room + 1} characters.* room for {room} here: shorten it"):
        shop.define(actions={**shop.workflow.actions, named_action("a" * (room + 1)): till})
