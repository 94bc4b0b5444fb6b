"""A request ends under the version it came in with; other code parks it and never executes it."""

from __future__ import annotations

import pytest

from ops.extract import extract
from ops.validate import validate
from tests.ops import toy
from tests.ops.passes import Shop, refund
from tests.ops.tills import HookedTill


def test_a_request_of_a_version_no_longer_carried_is_never_proposed_for(shop: Shop) -> None:
    """It goes to a person with the reason, and no model is asked."""
    shop.queue({"old": refund()})
    shop.define(version="2", extractor=lambda request: pytest.fail("asked"))
    shop.run()
    old = shop.request("old")
    assert (old.state, old.reason) == ("needs_review", "workflow version 1 is no longer carried here")
    shop.assert_ledger_intact()


@pytest.mark.parametrize("steps", [(extract,), (extract, validate)])
def test_a_proposal_of_a_version_no_longer_carried_is_not_released(shop: Shop, steps: tuple[object, ...]) -> None:
    """Whatever step it has reached, new code does not decide on it."""
    shop.queue({"old": refund()})
    shop.run(*steps)  # type: ignore[arg-type]  # steps, which pytest keeps as objects
    shop.define(version="2")
    shop.run()
    assert shop.states() == {"old": "needs_review"}
    assert shop.calls() == []


def test_an_approved_request_of_a_version_no_longer_carried_is_not_executed(shop: Shop) -> None:
    """An approval does not make other code execute it."""
    shop.queue({"old": refund("80.00")})
    shop.run()
    shop.vote("old")
    shop.define(version="2")
    shop.run()
    assert shop.states() == {"old": "needs_review"}
    assert shop.calls() == []


def test_a_carried_version_is_finished(shop: Shop) -> None:
    """New code that says it carries the version executes what was approved under it."""
    shop.queue({"old": refund("80.00")})
    shop.run()
    shop.vote("old")
    shop.define(version="2", carries=("1",))
    shop.run()
    assert shop.states() == {"old": "completed"}
    assert len(shop.calls()) == 1


def test_a_request_that_has_begun_goes_to_the_dead_letters_instead(shop: Shop) -> None:
    """With an effect done, no new input and no new proposal may touch it: only an operator's decision."""
    toy.set_mood(shop.till, "lose the answer", "order.refund")
    shop.queue({"old": refund(say="saga")})
    shop.run()
    shop.define(version="2")
    shop.execute("update effects set state = 'intended' where state = 'unknown'")
    shop.run_again()
    assert shop.states() == {"old": "dead_lettered"}
    assert len(shop.calls()) == 1
    (letter,) = shop.rows("select step, failure from dead_letters")
    assert letter == ("execute", "workflow version 1 is no longer carried here")


def test_a_changed_target_is_a_changed_proposal(shop: Shop) -> None:
    """What was approved for one account of the provider is not executed at another."""
    shop.queue({"old": refund("80.00")})
    shop.run()
    shop.vote("old")
    other = shop.folder / "other"
    other.mkdir()
    shop.use(HookedTill(file=str(toy.new_ledger(other))))
    shop.run()
    assert shop.states() == {"old": "needs_review"}
    assert shop.calls() == toy.calls_at(other / "till.sqlite") == []
