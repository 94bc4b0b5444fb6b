"""A workflow definition that is wrong in any way does not load, and says what to write instead."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import pytest

from policies.actions import Action, Request
from policies.errors import DefinitionError
from policies.outcomes import Done, Semantics
from resources.adapters.base import Adapter
from resources.workflow import Workflow
from tests.workflow.refunds import Orders, Payments, Refund, Release, Reserve, Stock, refunds

STOCK = Stock(url="https://stock.example")
PAYMENTS = refunds.actions[Refund]


def changed(**fields: Any) -> Workflow:
    """The workflow of refunds with some fields replaced."""
    return dataclasses.replace(refunds, **fields)


class Other(Action, name="other.do", reversible=False):
    pass


class Namesake(Action, name="order.refund", reversible=False):
    pass


class Restock(Action, name="stock.restock", reversible=True, undo=Release):
    order_id: str


class Endless(Action, name="stock.endless", reversible=True, undo=Restock):
    order_id: str


class Anything(Adapter):
    semantics = Semantics()
    url: str = ""

    def execute(self, action: Action, key: str) -> Done:
        return Done(key)


class Reading(Anything):
    def __call__(self, request: Request) -> None:
        """Would be an extractor."""


class ReserveOnly(Stock):
    def execute(self, action: Reserve, key: str) -> Done:  # type: ignore[override]
        return Done(key)


def answer_nothing(request: Request, more: str) -> None:
    """Takes too much."""


async def answer_later(request: Request) -> None:
    """Would have to be awaited."""


MISTAKES: list[tuple[dict[str, Any], str]] = [
    ({"name": "Refunds"}, "name: write a lower-case letter"),
    ({"name": "a" * 49}, "name: write a lower-case letter"),
    ({"name": "refunds\n"}, "name: write a lower-case letter"),
    ({"name": None}, "name: write a lower-case letter"),
    ({"version": " "}, "version and carries: write texts"),
    ({"version": 2}, "version and carries: write texts"),
    ({"carries": "1"}, "version and carries: write texts"),
    ({"carries": ("1",)}, "carries: name earlier versions only"),
    ({"carries": ("0", "0")}, "carries: name earlier versions only"),
    ({"request": Request}, "request: give a subclass of fs.Request"),
    ({"request": Orders}, "request: give a subclass of fs.Request"),
    ({"request": "refund"}, "request: give a subclass of fs.Request"),
    ({"actions": {}}, "actions: map each action class to its adapter"),
    ({"actions": [Refund]}, "actions: map each action class to its adapter"),
    ({"actions": {Action: STOCK}}, "no action class"),
    ({"actions": {"order.refund": PAYMENTS}}, "no action class"),
    ({"actions": {Refund: None}}, "actions: Refund has no adapter"),
    ({"actions": {Refund: Payments}}, "actions: Refund has no adapter"),
    ({"actions": {Refund: STOCK}}, "Stock: execute does not take order.refund"),
    ({"actions": {Reserve: ReserveOnly(url="x")}}, "ReserveOnly: execute does not take stock.release"),
    ({"actions": {Refund: Anything(), Namesake: Anything()}}, "two classes have the type name 'order.refund'"),
    ({"actions": {Endless: Anything()}}, "stock.restock undoes another action, so say reversible=False there"),
    ({"extractor": None}, "extractor"),
    ({"extractor": answer_nothing}, "called with the request alone"),
    ({"extractor": answer_later}, "a plain callable"),
    ({"extractor": Reading()}, "an adapter holds a provider's secret"),
    ({"records": [Orders()]}, "records: map names to look-ups"),
    ({"records": {"orders": Orders}}, "records: 'orders' must be an instance"),
    ({"records": {}}, "records: Refund.order_id rests on 'orders'"),
    ({"policy": ""}, "policy: name the YAML file"),
    ({"policy": None}, "policy: name the YAML file"),
    ({"policy": "missing.yaml"}, r"tests/workflow/missing.yaml: no such file"),
    ({"batches": "daily"}, "batches: write batches=fs.daily"),
    ({"rules": [len]}, "rules: write a tuple of functions"),
    ({"rules": ("rule",)}, "rules: write a tuple of functions"),
]


@pytest.mark.parametrize(("fields", "problem"), MISTAKES)
def test_each_mistake_is_named_with_its_remedy(fields: dict[str, Any], problem: str) -> None:
    """The error says in which field the mistake is and what belongs there."""
    with pytest.raises(DefinitionError, match=problem):
        changed(**fields)


def test_a_mistake_names_the_file_of_the_definition() -> None:
    """A location may hold many workflows."""
    with pytest.raises(DefinitionError, match=re.escape(f"{Path(__file__).parent / 'refunds.py'}: workflow 'refunds'")):
        changed(actions={})


def test_a_policy_that_does_not_fit_the_catalogue_is_refused() -> None:
    """The policy speaks of order.refund, which this definition no longer has."""
    with pytest.raises(DefinitionError, match=r"refunds\.yaml:4: tiers\[0\] .*order\.refund"):
        changed(actions={Other: Anything()}, records={})


def test_the_catalogue_holds_every_action_and_its_undo_with_adapter_and_target() -> None:
    """An undo goes to the adapter of what it undoes; targets are fingerprints."""
    entries = refunds.catalogue.entries
    assert set(entries) == {"order.refund", "stock.reserve", "stock.release"}
    assert refunds.catalogue.undo_types == {"stock.release"}
    assert (entries["order.refund"].adapter, entries["stock.release"].adapter) == ("Payments", "Stock")
    assert refunds.adapter_for("stock.release") is refunds.adapter_for("stock.reserve")
    assert re.fullmatch("[0-9a-f]{64}", entries["order.refund"].target)
    assert entries["order.refund"].target != entries["stock.reserve"].target
    assert entries["order.refund"].semantics is Payments.semantics


def test_an_undo_may_be_given_an_adapter_of_its_own() -> None:
    """Listing the undo class says who carries it out; it can then be left out of the other adapter."""
    own = Anything()
    workflow = changed(actions={**refunds.actions, Reserve: ReserveOnly(url="x"), Release: own})
    assert workflow.adapter_for("stock.release") is own
    assert workflow.catalogue.undo_types == {"stock.release"}


def test_a_changed_address_is_a_changed_target_and_a_changed_timeout_is_none() -> None:
    """What an approval is bound to is whom an effect reaches."""
    moved = changed(actions={**refunds.actions, Reserve: Stock(url="https://elsewhere.example")})
    assert moved.catalogue.entries["stock.reserve"].target != refunds.catalogue.entries["stock.reserve"].target
    assert moved.catalogue.entries["order.refund"].target == refunds.catalogue.entries["order.refund"].target


def test_a_definition_cannot_be_changed_afterwards() -> None:
    """What was checked is what runs."""
    with pytest.raises(dataclasses.FrozenInstanceError):
        refunds.name = "other"  # type: ignore[misc]
    with pytest.raises(TypeError):
        refunds.actions[Other] = STOCK  # type: ignore[index]
    actions = dict(refunds.actions)
    workflow = changed(actions=actions)
    actions.clear()
    assert workflow.actions


def test_the_policy_in_force_is_what_the_file_says_now(tmp_path: Path) -> None:
    """A policy is read again for every pass; a broken one is refused rather than ignored."""
    file = tmp_path / "policy.yaml"
    text = refunds.policy_path.read_text()
    file.write_text(text)
    workflow = changed(policy=file)
    before = workflow.policy_in_force()
    file.write_text(text.replace("mode: shadow", "mode: live"))
    after = workflow.policy_in_force()
    assert (before.mode, after.mode) == ("shadow", "live")
    assert before.hash != after.hash
    file.write_text(text.replace("mode: shadow", "mode: bold"))
    with pytest.raises(DefinitionError, match=r"policy\.yaml:2: mode"):
        workflow.policy_in_force()


def test_carried_versions_begin_with_the_own() -> None:
    """A request of an earlier version ends under this definition only if it says so."""
    assert changed(version="3", carries=("1", "2")).carried_versions == ("3", "1", "2")
    assert refunds.carried_versions == ("1",)


def test_no_form_of_a_workflow_shows_its_parts() -> None:
    """It is shown by name and version: run logs hold reprs of resources."""
    assert repr(refunds) == "Workflow('refunds', version='1')"


def test_local_action_classes_are_understood(tmp_path: Path) -> None:
    """Definitions inside a function, as in notebooks, resolve their annotations by the workflow's own classes."""

    class Ping(Action, name="ping.send", reversible=False):
        pass

    class Pinger(Adapter):
        semantics = Semantics()
        url: str = ""

        def execute(self, action: Ping, key: str) -> Done:
            return Done(key)

    file = tmp_path / "policy.yaml"
    file.write_text(refunds.policy_path.read_text().replace("order.refund, over: 50.00 EUR", "ping.send"))
    assert changed(actions={Ping: Pinger()}, records={}, policy=file).adapter_for("ping.send").url == ""  # type: ignore[attr-defined]
