"""One person, however their id is written."""

from __future__ import annotations

import pytest

from policies.errors import FailsafeError, NotPermitted
from policies.records import Record
from resources.records import Records
from resources.store.principals import create_principal
from tests.ops import toy
from tests.ops.passes import Shop, refund


class Paid(Records):
    def __init__(self, to: str) -> None:
        self.to = to

    def find(self, key: str) -> Record | None:
        return Record("orders", key, {"order_id": key}, principal=self.to)


@pytest.mark.parametrize(
    ("paid_to", "voter"),
    [(" Ann@Example.com", "ann@example.com"), ("Zoe\u0308", "zo\u00eb"), ("\uff21nn", "ann")],
    ids=["case and blanks", "composed", "full width"],
)
def test_a_payee_whose_id_is_written_otherwise_does_not_vote(shop: Shop, paid_to: str, voter: str) -> None:
    """Upper case, blanks and other forms of the same characters make nobody else of her."""
    shop.define(records={"orders": Paid(paid_to)})
    shop._leads["ann"] = toy.principal(shop.url, "ann", ["lead"], kind="human", external_id=voter)  # noqa: SLF001
    shop.queue({"one": refund("80.00")})
    shop.run()
    with pytest.raises(NotPermitted):
        shop.vote("one", by="ann")


def test_nobody_is_two_voices(shop: Shop) -> None:
    """Of two principals whose ids differ in case or blanks, the second is not created."""
    toy.principal(shop.url, "ann", ["lead"], kind="human", external_id="ann@example.com")
    with pytest.raises(FailsafeError, match="not in use"):
        create_principal(shop.url, kind="human", name="ann too", external_id=" Ann@Example.com", roles=["lead"])
