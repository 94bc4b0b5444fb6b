"""Declaring requests and actions."""

from __future__ import annotations

from typing import Annotated

import pytest
from pydantic import computed_field

from policies.actions import Action, Request, Trust, Untrusted
from policies.errors import DefinitionError
from tests.policies.samples import Notify, Refund, Release, Reserve


def test_an_action_states_what_policy_must_know() -> None:
    """The class keywords become the catalogue entry."""
    kind = Refund.action_type
    assert (kind.name, kind.model, kind.reversible, kind.undo) == ("order.refund", Refund, False, None)
    assert (kind.sensitivity, kind.recipient_scope, kind.notification) == ("financial", "external", False)
    assert (Refund.action_type.on_unknown, Notify.action_type.on_unknown) == ("ask", "ask")
    assert Reserve.action_type.undo is Release
    assert [one.action_type.rank for one in (Reserve, Refund, Notify)] == [0, 1, 2]


@pytest.mark.parametrize(
    ("keywords", "remedy"),
    [
        ({"reversible": False}, "give it a type name"),
        ({"name": "a.b"}, "no default"),
        ({"name": "a.b", "reversible": True}, "must name its compensation"),
        ({"name": "a.b", "reversible": False, "undo": Release}, "say reversible=True"),
        ({"name": "a.b", "reversible": False, "on_unknown": "assume_done"}, "where notification=True"),
        ({"name": "a.b", "reversible": False, "notification": True, "on_unknown": "retry"}, "where notification=True"),
    ],
)
def test_a_contradiction_is_a_mistake(keywords: dict[str, object], remedy: str) -> None:
    """A missing or contradicting keyword raises when the class is made, with the remedy."""
    with pytest.raises(DefinitionError, match=remedy):
        type("Wrong", (Action,), {"__module__": __name__}, **keywords)


def test_a_notification_may_be_taken_for_done() -> None:
    """Where nobody can find out, its catalogue entry may say so; a model or a policy never does."""

    class Tell(Action, name="a.tell", reversible=False, notification=True, on_unknown="assume_done"):
        text: str

    assert Tell.action_type.on_unknown == "assume_done"


def test_a_computed_field_is_a_mistake() -> None:
    """What is computed would be sent as a parameter and not read back as one."""
    with pytest.raises(DefinitionError, match="plain property"):

        class Computed(Action, name="a.computed", reversible=False):
            one: int

            @computed_field  # type: ignore[prop-decorator]  # mypy does not take decorated properties
            @property
            def two(self) -> int:
                return self.one + 1


def test_a_request_says_whom_to_believe() -> None:
    """A field is the principal's own unless it is marked as third-party text."""

    class Ticket(Request):
        order_id: str
        message: Annotated[str, Untrusted]
        attachment: Annotated[str, Untrusted()] = ""

    assert Ticket.trust() == {
        "order_id": Trust.PRINCIPAL,
        "message": Trust.UNTRUSTED,
        "attachment": Trust.UNTRUSTED,
    }
