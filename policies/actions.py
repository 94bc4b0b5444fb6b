"""What a user declares: request models, typed actions, and which parameters carry authority."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict

from policies.errors import DefinitionError

MAX_TEXT = 4_000
"""Longest string a parameter may hold; longer ones are refused with a finding. Documents belong in the request."""

Sensitivity = Literal["none", "personal", "financial"]
RecipientScope = Literal["self", "internal", "external"]
OnUnknown = Literal["ask", "assume_done"]


class Trust(StrEnum):
    """How far a source may be believed."""

    PRINCIPAL = "principal"  # the authenticated request itself
    RECORD = "record"  # a trusted service
    UNTRUSTED = "untrusted"  # third-party text: may inform, never authorise


class Untrusted:
    """Marks a request field as third-party text: `Annotated[str, Untrusted]`."""


@dataclass(frozen=True, slots=True)
class Authority:
    """Marks an action parameter that moves value or reaches somebody (recipient, amount, account, destination).

    With `record`, it must be the `field` (default: the parameter's own name) of the trusted record that the action's
    `key` parameter names (default: the first parameter that names this record); a parameter that the model left out is
    filled from it. Without `record`, it must be derivable from a quote.
    """

    record: str | None = None
    field: str | None = None
    key: str | None = None


class Request(BaseModel):
    """Base of a workflow's request schema. Each field is a source that evidence may quote."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @classmethod
    def trust(cls) -> dict[str, Trust]:
        """Each field's trust: `untrusted` where annotated so, otherwise `principal`."""
        return {
            name: Trust.UNTRUSTED
            if any(m is Untrusted or isinstance(m, Untrusted) for m in info.metadata)
            else Trust.PRINCIPAL
            for name, info in cls.model_fields.items()
        }


class Action(BaseModel):
    """Base of a typed action. Class keywords state what the catalogue must know before it may be enabled.

    Keywords:
        name: the action type, such as `order.refund`.
        reversible: whether `undo` can restore the state; required, no default.
        undo: the action that compensates; required exactly when reversible.
        sensitivity: `none`, `personal` or `financial`.
        recipient_scope: `self`, `internal` or `external`.
        notification: tells somebody about what was done; runs last.
        on_unknown: where nobody can find out whether it happened: `ask` a person, or, for notifications only,
            `assume_done`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    action_type: ClassVar[ActionType]

    def __init_subclass__(
        cls,
        *,
        name: str | None = None,
        reversible: bool | None = None,
        undo: type[Action] | None = None,
        sensitivity: Sensitivity = "none",
        recipient_scope: RecipientScope = "internal",
        notification: bool = False,
        on_unknown: OnUnknown = "ask",
        **kwargs: Any,
    ) -> None:
        super().__init_subclass__(**kwargs)
        cls._declared = (name, reversible, undo, sensitivity, recipient_scope, notification, on_unknown)

    _declared: ClassVar[tuple[Any, ...]] = (None, None, None, "none", "internal", False, "ask")

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        name, reversible, undo, sensitivity, recipient_scope, notification, on_unknown = cls._declared
        cls.action_type = ActionType.declare(
            cls,
            name=name,
            reversible=reversible,
            undo=undo,
            sensitivity=sensitivity,
            recipient_scope=recipient_scope,
            notification=notification,
            on_unknown=on_unknown,
        )


@dataclass(frozen=True, slots=True)
class ActionType:
    """A catalogue entry: everything policy needs to know about one kind of action."""

    name: str
    model: type[Action]
    reversible: bool
    undo: type[Action] | None
    sensitivity: Sensitivity
    recipient_scope: RecipientScope
    notification: bool
    on_unknown: OnUnknown
    authority: dict[str, Authority]

    @property
    def rank(self) -> int:
        """Order of execution: reversible first, then irreversible, then notifications."""
        return 2 if self.notification else 0 if self.reversible else 1

    @classmethod
    def declare(
        cls,
        model: type[Action],
        *,
        name: str | None,
        reversible: bool | None,
        undo: type[Action] | None,
        sensitivity: Sensitivity,
        recipient_scope: RecipientScope,
        notification: bool,
        on_unknown: OnUnknown,
    ) -> ActionType:
        """The catalogue entry of `model`.

        Raises:
            DefinitionError: a keyword is missing or contradicts another.
        """
        where = f"action {model.__module__}.{model.__qualname__}"
        if not name:
            raise DefinitionError(f'{where}: give it a type name: class {model.__name__}(Action, name="order.refund")')
        if reversible is None:
            raise DefinitionError(f"{where}: say reversible=True, with undo=..., or reversible=False; no default")
        if reversible and undo is None:
            raise DefinitionError(f"{where}: reversible=True must name its compensation: undo=<Action class>")
        if not reversible and undo is not None:
            raise DefinitionError(f"{where}: undo= is given, so say reversible=True")
        if on_unknown not in (("ask", "assume_done") if notification else ("ask",)):
            raise DefinitionError(f'{where}: on_unknown is "ask", or "assume_done" where notification=True')
        if model.model_computed_fields:
            names = ", ".join(model.model_computed_fields)
            raise DefinitionError(f"{where}: {names} would be sent as parameters; write a plain property instead")
        authority = {
            field: marker
            for field, info in model.model_fields.items()
            for marker in info.metadata
            if isinstance(marker, Authority)
        }
        return cls(name, model, reversible, undo, sensitivity, recipient_scope, notification, on_unknown, authority)
