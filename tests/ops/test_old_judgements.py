"""What is released by policy alone rests on judgements of this moment."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from ops.assess import assess
from ops.extract import extract
from ops.validate import validate
from resources.store.engine import Duty, engine_for
from tests.ops.passes import Shop, refund


def test_an_automatic_effect_does_not_rest_on_an_old_validation(shop: Shop) -> None:
    """The run ended between the steps, and the initiator has lost the role since."""
    shop.queue({"one": refund()})
    shop.run(extract, validate)
    shop.execute("update findings set created_at = created_at - interval '6 h'")
    with engine_for(Duty.OPERATOR, shop.url).begin() as connection:
        connection.execute(sa.text("select set_roles('shop', array['nobody'])"))
    shop.run_again(2)
    assert (shop.calls(), shop.states()) == ([], {"one": "rejected"})


@pytest.mark.parametrize(("age", "rechecked"), [("0 s", True), ("21 s", False)])
def test_only_a_judgement_of_just_now_counts_as_rechecked(shop: Shop, age: str, rechecked: bool) -> None:
    """Otherwise all is judged anew right before the effect."""
    shop.queue({"one": refund()})
    shop.run(extract, validate)
    shop.execute(f"update findings set created_at = created_at - interval '{age}'")
    shop.run(assess)
    ((found,),) = shop.rows("select rechecked_until is not null from requests")
    assert found is rechecked
