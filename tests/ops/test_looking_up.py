"""Keys are looked up apart where a service fails for some of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.records import Record
from resources.look_ups import MOST_AFTER_AN_ANSWER, MOST_IN_A_ROW, PARTS, LookedUp, resolve_apart
from resources.records import Records
from resources.workflow import Workflow
from tests.ops import toy

KEYS = [f"K{number}" for number in range(1000)]


class Counted(Records):
    """Fails for some keys, and for all once it was called often enough; notes how each call ended."""

    def __init__(self, name: str, bad: Iterable[str] = (), dies_after: int = 10_000) -> None:
        self.name = name
        self.bad = frozenset(bad)
        self.dies_after = dies_after
        self.calls: list[str] = []

    def find_many(self, keys: Iterable[str]) -> Mapping[str, Record | None]:
        asked = list(keys)
        if len(self.calls) >= self.dies_after or not self.bad.isdisjoint(asked):
            self.calls.append("failed")
            raise TimeoutError
        self.calls.append("answered")
        return {key: Record(self.name, key, {}) for key in asked}


@pytest.fixture(scope="module")
def workflow(tmp_path_factory: pytest.TempPathFactory) -> Workflow:
    """A workflow whose record services each test replaces."""
    folder = tmp_path_factory.mktemp("workflow")
    return toy.toy_workflow(folder, toy.new_ledger(folder))


def look(workflow: Workflow, *services: Counted, keys: Iterable[str] = KEYS) -> LookedUp:
    """Look these keys up in each of the services."""
    named = {service.name: service for service in services}
    return resolve_apart(replace(workflow, records=named), {(name, key) for name in named for key in keys})


def test_one_call_is_enough_where_nothing_fails(workflow: Workflow) -> None:
    """What works costs no more than it did."""
    service = Counted("orders")
    looked = look(workflow, service)
    assert service.calls == ["answered"]
    assert looked.records.keys() == {("orders", key) for key in KEYS}
    assert looked.failed == {}


@given(bad=st.sets(st.sampled_from(KEYS), min_size=1, max_size=20))
def test_exactly_the_bad_keys_fail_alone_by_few_calls(workflow: Workflow, bad: set[str]) -> None:
    """All the others are answered; each bad key costs a path of parts down to it, not a call for each other key."""
    service = Counted("orders", bad)
    looked = look(workflow, service)
    assert looked.failed == {("orders", key): "TimeoutError" for key in bad}
    assert looked.alone == looked.failed.keys()
    assert looked.records.keys() == {("orders", key) for key in KEYS if key not in bad}
    assert len(service.calls) <= 1 + 4 * PARTS * len(bad)


def test_a_service_that_is_down_is_left_alone(workflow: Workflow) -> None:
    """It costs a few calls, and the other service answers all the same."""
    down, up = Counted("customers", KEYS), Counted("orders")
    looked = look(workflow, down, up)
    assert down.calls == ["failed"] * MOST_IN_A_ROW
    assert looked.failed.keys() == {("customers", key) for key in KEYS}
    assert looked.records.keys() == {("orders", key) for key in KEYS}
    assert (looked.answered("customers"), looked.answered("orders")) == (False, True)


def test_nobody_can_choose_which_keys_are_asked_for_alone(workflow: Workflow) -> None:
    """Keys that are named so as to come first are not always the ones that stand for all of them."""
    chosen = {frozenset(look(workflow, Counted("orders", KEYS)).alone) for _ in range(5)}
    assert len(chosen) > 1


def test_a_service_that_goes_down_meanwhile_is_left_alone(workflow: Workflow) -> None:
    """What was not asked for alone is not blamed for it."""
    service = Counted("orders", {"K0"}, dies_after=4)
    looked = look(workflow, service)
    assert service.calls.count("failed") <= 4 + MOST_AFTER_AN_ANSWER
    assert len(looked.alone) < MOST_AFTER_AN_ANSWER
    assert looked.records.keys() | looked.failed.keys() == {("orders", key) for key in KEYS}


def test_a_key_on_its_own_is_asked_for_once(workflow: Workflow) -> None:
    """There is nothing to tell it apart from."""
    service = Counted("orders", {"K0"})
    looked = look(workflow, service, keys=["K0"])
    assert service.calls == ["failed"]
    assert looked.alone == {("orders", "K0")}
