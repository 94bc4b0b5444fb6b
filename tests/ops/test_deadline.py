"""Tries are bounded in number and in time; what would be tried again only after its deadline goes to a person."""

from __future__ import annotations

from datetime import timedelta

import pytest

from ops.parking import Failed, delay_of
from policies.attempts import MAX_ATTEMPTS
from policies.errors import DefinitionError, NotExecuted
from resources.run_settings import backoff_base_seconds
from tests.ops import toy
from tests.ops.passes import Shop, refund
from tests.ops.tills import Hook

DAY = 24 * 3600.0


def not_now(retry_after: float | None = None) -> Hook:
    """The provider takes nothing now, and may say when."""

    def refuse(key: str) -> None:
        raise NotExecuted("busy", retry_after=retry_after)

    return refuse


def test_the_attempts_span_about_half_an_hour(shop: Shop) -> None:
    """On average of the jitter: long enough for an outage of minutes, short enough for a person to hear of it."""
    shop.queue({"one": refund()})
    opened = shop.open()
    opened.uniform = lambda: 0.5
    waits = [delay_of(opened, Failed(shop.request("one").id, tried, "busy")) for tried in range(MAX_ATTEMPTS - 1)]
    assert waits[0] == timedelta(seconds=15)
    assert timedelta(minutes=20) < sum(waits, timedelta()) < timedelta(minutes=40)


def test_the_first_wait_can_be_set(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Demonstrations set it lower; what means nothing is refused."""
    monkeypatch.delenv("FAILSAFE_BACKOFF_SECONDS", raising=False)
    assert backoff_base_seconds() == 30.0
    monkeypatch.setenv("FAILSAFE_BACKOFF_SECONDS", "2")
    assert backoff_base_seconds() == 2.0
    for text in ("soon", "0", "-5", "nan", "86400"):
        monkeypatch.setenv("FAILSAFE_BACKOFF_SECONDS", text)
        with pytest.raises(DefinitionError, match="FAILSAFE_BACKOFF_SECONDS"):
            backoff_base_seconds()


def test_the_first_failure_sets_the_deadline(shop: Shop) -> None:
    """A day from then on; later failures do not move it, and the next step has one of its own."""
    shop.hooked(before=not_now())
    shop.queue({"one": refund()})
    shop.run()
    left = "select extract(epoch from retry_until - clock_timestamp())::float8 as seconds, retry_until from requests"
    first = shop.row(left)
    assert DAY - 60 < first.seconds <= DAY
    shop.run_again()
    assert shop.request("one").attempts == 2
    assert shop.row(left).retry_until == first.retry_until
    shop.hooked()
    shop.run_again()
    assert shop.states() == {"one": "completed"}
    assert shop.row(left).retry_until is None


def test_a_failure_after_the_deadline_is_the_last(shop: Shop) -> None:
    """However few attempts there were: the request is parked with that reason, and a redrive begins anew."""
    shop.hooked(before=not_now())
    shop.queue({"one": refund()})
    shop.run()
    shop.execute("update requests set retry_until = clock_timestamp()")
    shop.run_again()
    assert shop.states() == {"one": "dead_lettered"}
    assert "more than 24 h after the first that failed" in shop.request("one").reason
    assert shop.request("one").retry_until is None


@pytest.mark.parametrize(("retry_after", "state"), [(DAY - 600, "executing"), (DAY + 600, "dead_lettered")])
def test_a_provider_that_wants_more_time_than_there_is_is_not_waited_for(
    shop: Shop, retry_after: float, state: str
) -> None:
    """A Retry-After within the deadline is kept to; one that reaches past it parks the request at once."""
    shop.hooked(before=not_now(retry_after))
    shop.queue({"one": refund()})
    opened = shop.open()
    opened.uniform = lambda: 0.0
    shop.run_pass(opened)
    assert shop.states() == {"one": state}
    assert ("the next try, in" in shop.request("one").reason) is (state == "dead_lettered")


def test_what_does_not_count_has_no_deadline(shop: Shop) -> None:
    """A pause or an open breaker is nobody's failure: after a day of it the request goes on."""
    shop.queue({"one": refund()})
    shop.execute(
        "insert into pauses (scope, name, paused_by, reason) select 'everything', '*', id, 'x' from principals limit 1"
    )
    shop.run()
    shop.execute("update requests set retry_until = clock_timestamp() - interval '1 d'")
    shop.run_again()
    assert shop.states() == {"one": "executing"}
    shop.execute("delete from pauses")
    shop.run_again()
    assert shop.states() == {"one": "completed"}


def test_what_is_unknown_is_looked_up_before_the_deadline_ends_it(shop: Shop) -> None:
    """An answer that is lost after the deadline does not make it a person's: the provider can tell."""
    shop.hooked(before=not_now())
    shop.queue({"one": refund()})
    shop.run()
    shop.execute("update requests set retry_until = clock_timestamp()")
    shop.hooked()
    toy.set_mood(shop.till, "lose the answer")
    shop.run_again()
    assert shop.states() == {"one": "executing"}
    shop.run_again()
    assert (shop.states(), len(shop.effects())) == ({"one": "completed"}, 1)
