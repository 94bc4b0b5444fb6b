"""After an outage everything that waits goes out, whether or not new work comes."""

from __future__ import annotations

import pytest

from policies.errors import NotExecuted
from tests.ops.passes import Shop, refund

MINUTE = (
    "update providers set credited_at = credited_at - interval '1 min',"
    " open_until = open_until - interval '1 min', probe_until = probe_until - interval '1 min'"
)


def busy(_key: str) -> None:
    """It takes nothing now."""
    raise NotExecuted("429 Too Many Requests")


def minutes(shop: Shop, number: int) -> None:
    """So many minutes pass, with a run in each."""
    for _ in range(number):
        shop.execute(MINUTE)
        shop.run_again()


@pytest.mark.parametrize("bad_minutes", [1, 7])
def test_what_waited_for_the_provider_is_carried_out(shop: Shop, bad_minutes: int) -> None:
    """Nothing is left behind for lack of credit, and nothing was tried so often that it became a person's."""
    shop.hooked(before=busy)
    shop.queue({f"no{number}": refund(order=f"A{number}") for number in range(80)})
    shop.run()
    minutes(shop, bad_minutes)
    assert "completed" not in shop.states().values()
    shop.hooked()
    minutes(shop, 12)
    assert set(shop.states().values()) == {"completed"}
    assert len(shop.effects()) == 80
