"""One bad item never stops the others: it waits its turn or is parked alone, with the reason."""

from __future__ import annotations

from typing import Any

from ops.assess import assess
from ops.extract import extract
from ops.validate import validate
from policies.attempts import MAX_ATTEMPTS
from policies.records import Record
from tests.ops import toy
from tests.ops.passes import Shop, refund


class PoisonedOrders(toy.Orders):
    """A record service that gives one customer's id with a NUL in it, which no text column of Postgres holds."""

    def find(self, key: str) -> Record | None:
        record = super().find(key)
        if key != "poison" or record is None:
            return record
        return Record("orders", key, record.fields, principal="cust\x00omer")


def test_one_poisonous_row_in_a_full_chunk_is_parked_alone(shop: Shop) -> None:
    """499 requests of a chunk of 500 go on; the one that the database refuses is parked with the reason."""
    shop.define(records={"orders": PoisonedOrders()})
    shop.queue({f"r{number}": refund(order=f"A{number}") for number in range(499)} | {"bad": refund(order="poison")})
    shop.run(extract, validate, assess)
    states = shop.states()
    assert states.pop("bad") == "dead_lettered"
    assert len(states) == 499
    assert set(states.values()) == {"executing"}
    (letter,) = shop.rows("select step, failure from dead_letters")
    assert letter == ("validate", "the database refused it: SQLSTATE 22P05")
    shop.assert_ledger_intact()


class Flaky:
    """A model whose client fails for one order, as often as it is told to."""

    def __init__(self, failures: int, *, deterministic: bool = False) -> None:
        self.deterministic = deterministic
        self.failures = failures

    def __call__(self, request: toy.RefundRequest) -> Any:
        if request.order_id == "bad" and self.failures:
            self.failures -= 1
            raise ValueError("bad gateway\x00")
        return toy.toy_model(request)


def test_a_model_that_fails_is_asked_again_later(shop: Shop) -> None:
    """A failure of the client counts as an attempt and waits its turn, while the others go on."""
    shop.define(extractor=Flaky(failures=2))
    shop.queue({"bad": refund(order="bad"), "good": refund()})
    shop.run()
    assert shop.states() == {"bad": "received", "good": "completed"}
    waiting = shop.request("bad")
    assert (waiting.attempts, waiting.lease_token) == (1, None)
    assert waiting.reason == "the extractor failed: ValueError: bad gateway\\u0000"
    assert waiting.next_eligible_at > waiting.received_at
    shop.run_again(2)
    assert shop.states() == {"bad": "completed", "good": "completed"}


def test_a_model_that_always_fails_is_given_up_after_its_attempts(shop: Shop) -> None:
    """The last attempt parks the request with the reason, and no further run asks the model."""
    model = Flaky(failures=1000)
    shop.define(extractor=model)
    shop.queue({"bad": refund(order="bad")})
    shop.run()
    shop.run_again(MAX_ATTEMPTS - 2)
    assert shop.states() == {"bad": "received"}
    shop.run_again()
    assert shop.states() == {"bad": "dead_lettered"}
    asked = model.failures
    shop.run_again(2)
    assert model.failures == asked == 1000 - MAX_ATTEMPTS
    (letter,) = shop.rows("select step, failure from dead_letters")
    assert letter.step == "extract"
    assert f"attempt {MAX_ATTEMPTS} of {MAX_ATTEMPTS}" in letter.failure
    shop.assert_ledger_intact()


def test_a_failure_that_will_not_pass_is_parked_at_once(shop: Shop) -> None:
    """A deterministic extractor that fails would fail again: one attempt, and the reason says nothing of others."""
    model = Flaky(failures=1000, deterministic=True)
    shop.define(extractor=model)
    shop.queue({"bad": refund(order="bad"), "good": refund()})
    shop.run()
    assert shop.states() == {"bad": "dead_lettered", "good": "completed"}
    assert model.failures == 999
    assert shop.request("bad").reason == "the extractor failed: ValueError: bad gateway\\u0000"
