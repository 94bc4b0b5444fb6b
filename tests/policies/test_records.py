"""Which trusted records a proposal needs."""

from __future__ import annotations

from typing import Annotated, Any

import pytest

from policies.actions import MAX_TEXT, Action, Authority
from policies.catalogue import Catalogue, CatalogueEntry
from policies.errors import DefinitionError
from policies.outcomes import Semantics
from policies.proposals import Proposal, ProposedAction
from policies.records import RecordLink, needed_records, record_key, record_links
from tests.policies.samples import CATALOGUE, Refund, refund


class Transfer(Action, name="money.transfer", reversible=False):
    """Two records of one service, each with its own key."""

    source: Annotated[int, Authority(record="accounts", field="number")]
    target: str
    holder: Annotated[str, Authority(record="accounts", key="target")]


class Misspelt(Action, name="money.misspelt", reversible=False):
    """Names a key that is no parameter."""

    holder: Annotated[str, Authority(record="accounts", key="acount")]


def test_links_name_record_field_and_key() -> None:
    """Without more said, field is the parameter's name and the key the first parameter of that record."""
    assert record_links(Refund) == (
        RecordLink("order_id", "orders", "order_id", "order_id"),
        RecordLink("payee", "orders", "customer", "order_id"),
    )
    assert record_links(Transfer) == (
        RecordLink("source", "accounts", "number", "source"),
        RecordLink("holder", "accounts", "holder", "target"),
    )


def test_a_key_that_is_no_parameter_is_a_mistake() -> None:
    """A misspelt key is found when the catalogue is made."""
    with pytest.raises(DefinitionError, match="acount"):
        Catalogue({"money.misspelt": CatalogueEntry(Misspelt.action_type, "A", "t", Semantics())})


def test_every_key_is_asked_for_once() -> None:
    """Two actions on one order need one look-up, and an integer key is looked up by its text."""
    assert needed_records(Proposal((refund(), refund(note="again"))), CATALOGUE) == {("orders", "A-17")}
    catalogue = Catalogue({"money.transfer": CatalogueEntry(Transfer.action_type, "A", "t", Semantics())})
    transfer = ProposedAction("money.transfer", {"source": 12, "target": "34"})
    assert needed_records(Proposal((transfer,)), catalogue) == {("accounts", "12"), ("accounts", "34")}


@pytest.mark.parametrize("key", [None, True, 1.5, ["A-17"], {"id": 1}, "A\0", "\ud800", "x" * (MAX_TEXT + 1)])
def test_what_cannot_be_a_key_is_not_looked_up(key: Any) -> None:
    """A value that sealing refuses never reaches a trusted service."""
    action = ProposedAction("order.refund", {"order_id": key})
    assert needed_records(Proposal((action,)), CATALOGUE) == set()
    assert record_key("x" * MAX_TEXT) is not None


def test_unknown_actions_need_nothing() -> None:
    """An action outside the catalogue asks nothing of anybody."""
    assert needed_records(Proposal((ProposedAction("other", {"order_id": "A-17"}),)), CATALOGUE) == set()
