"""Reading sealed proposals back: only by the catalogue they were sealed for, under the hash of what the bytes say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from policies.actions import Action
from policies.catalogue import Catalogue, CatalogueEntry
from policies.errors import CanonicalFormError, DefinitionError
from policies.sealing import unseal
from tests.policies.samples import CATALOGUE, refund, sealed


class Changed(Action, name="order.refund", reversible=False):
    """The refund of a later release, with other parameters."""

    order_id: str


def entries(**changes: Any) -> Mapping[str, CatalogueEntry]:
    """The catalogue's entries with the refund changed."""
    return {**CATALOGUE.entries, "order.refund": replace(CATALOGUE.entries["order.refund"], **changes)}


@pytest.mark.parametrize(
    "change", [{"target": "https://elsewhere"}, {"adapter": "Other"}, {"action_type": Changed.action_type}]
)
def test_a_catalogue_that_no_longer_fits_raises(change: dict[str, Any]) -> None:
    """Bytes sealed for another adapter, target or action class are not read as if they were for this one."""
    with pytest.raises(DefinitionError, match="make a new proposal"):
        unseal(sealed(refund()).canonical, Catalogue(entries(**change)))


@pytest.mark.parametrize("data", [b"", b"[]", b"null", b"{}", b"\xff"])
def test_bytes_that_are_no_sealed_proposal_raise(data: bytes) -> None:
    """Bytes that were never sealed raise our error."""
    with pytest.raises(CanonicalFormError):
        unseal(data, CATALOGUE)


def test_a_tampered_parameter_gives_another_hash() -> None:
    """Bytes changed in storage no longer have the hash that was approved."""
    proposal = sealed(refund())
    tampered = unseal(proposal.canonical.replace(b"4820", b"9820"), CATALOGUE)
    assert tampered.hash != proposal.hash
    assert tampered.actions[0].parameters_hash != proposal.actions[0].parameters_hash


def test_a_catalogue_checks_itself() -> None:
    """A wrong name or a compensation without an adapter does not make a catalogue."""
    with pytest.raises(DefinitionError, match="use one name"):
        Catalogue({"other": CATALOGUE.entries["order.refund"]})
    with pytest.raises(DefinitionError, match=r"stock\.release"):
        Catalogue({"stock.reserve": CATALOGUE.entries["stock.reserve"]})


def test_a_catalogue_hash_follows_the_action_types() -> None:
    """The catalogue's hash changes with an action's parameters and not with its adapter."""
    assert Catalogue(entries(target="https://elsewhere")).hash == CATALOGUE.hash
    assert Catalogue(entries(action_type=Changed.action_type)).hash != CATALOGUE.hash
