"""The parts of a policy: what raises a tier, and what a tier demands."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from policies.actions import RecipientScope, Sensitivity
from policies.durations import Duration
from policies.findings import CODES
from policies.money import Money
from policies.tiers import Tier

Text = Annotated[str, Field(min_length=1, max_length=300)]


def _as_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list | tuple) else (value,)


Amounts = Annotated[tuple[Money, ...], BeforeValidator(_as_tuple), Field(min_length=1)]
"""One amount, or one for each currency."""


class Part(BaseModel):
    """A part of a policy: nothing unknown, nothing converted by guesswork."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Escalation(Part):
    """Who may decide as well once nobody has for so long."""

    after: Duration
    roles: tuple[Text, ...] = Field(min_length=1, strict=False)  # a list in the policy file


class Demand(Part):
    """What releases a proposal: so many distinct people who hold one of the roles, before it expires.

    Attributes:
        roles: whoever holds one of them may decide.
        people: how many must approve; one denial is enough to refuse.
        expires_after: then it is over; expiry never approves.
        remind_after: announce once more that it waits.
        escalate: roles that may decide as well after a time; each is announced when its time comes.
    """

    roles: tuple[Text, ...] = Field(min_length=1, strict=False)  # a list in the policy file
    people: int = Field(ge=1, le=20)
    expires_after: Duration
    remind_after: Duration | None = None
    escalate: tuple[Escalation, ...] = Field(default=(), strict=False)

    @model_validator(mode="after")
    def _comes_in_time(self) -> Self:
        times = [self.remind_after, *(step.after for step in self.escalate)]
        if any(one is not None and one >= self.expires_after for one in times):
            raise ValueError("remind_after and escalate.after must come before expires_after, or nobody would see them")
        return self


class Decision(Part):
    """What a tier means: `auto`, `refuse`, or `review` with its demand."""

    kind: Literal["auto", "review", "refuse"]
    demand: Demand | None = None

    @model_validator(mode="before")
    @classmethod
    def _from_policy(cls, value: Any) -> Any:
        if value in ("auto", "refuse"):
            return {"kind": value}
        if isinstance(value, dict) and set(value) == {"review"}:
            return {"kind": "review", "demand": value["review"]}
        raise ValueError("write auto, refuse, or {review: {roles: [lead], people: 1, expires_after: 2d}}")

    @model_validator(mode="after")
    def _demand_is_given(self) -> Self:
        if (self.kind == "review") != (self.demand is not None):
            raise ValueError("write {review: {roles: [lead], people: 1, expires_after: 2d}}")
        return self


class Rule(Part):
    """Raises the tier where all of its conditions hold, for one and the same action where they speak of actions.

    A condition that cannot be decided (an amount in a currency that `over` does not name, a date that is missing, no
    confidence stated) counts as holding: what cannot be shown to be harmless is not.

    Attributes:
        tier: the tier it raises to.
        because: the reason people read.
        action: only actions of this type.
        over: an amount of the action is over this one; a list names one amount per currency.
        evidence: `untrusted`: an authority parameter rests on third-party text only; `unquoted`: no quote at all.
        finding: validation found this code.
        claim: this claim is already taken by another request.
        field, older_than: the date parameter lies further back than the duration.
        as_of: the date parameter of the same action that `older_than` counts back from; without it, today.
        missing: the parameter was left out.
        sensitivity, recipient_scope, reversible: what the action type declares.
        confidence_below: the model's own confidence is lower, or not stated.
        novel: no completed request of this workflow has had the parameter's value.

    Parameter paths are `<action type>.<parameter>`; with `action`, the parameter alone is enough.
    """

    tier: Tier
    because: Text
    action: Text | None = None
    over: Amounts | None = None
    evidence: Literal["untrusted", "unquoted"] | None = None
    finding: Text | None = None
    claim: Text | None = None
    field: Text | None = None
    older_than: Duration | None = None
    as_of: Text | None = None
    missing: Text | None = None
    sensitivity: Sensitivity | None = None
    recipient_scope: RecipientScope | None = None
    reversible: bool | None = None
    confidence_below: float | None = Field(default=None, gt=0, le=1)
    novel: Text | None = None

    @model_validator(mode="after")
    def _conditions_fit(self) -> Self:
        if (self.field is None) != (self.older_than is None):
            raise ValueError("field and older_than belong together; give both or neither")
        if self.as_of is not None and self.field is None:
            raise ValueError("as_of says what older_than counts back from; give field and older_than as well")
        if self.as_of is not None and self._action_type(self.as_of) != self._action_type(self.field or ""):
            raise ValueError("as_of must name a parameter of the same action as field")
        if self.finding is not None and self.finding not in CODES:
            raise ValueError(f"finding {self.finding!r} does not exist; use one of {', '.join(CODES)}")
        for path in (self.field, self.as_of, self.missing, self.novel):
            if path is not None and "." not in path and self.action is None:
                raise ValueError(f"{path!r} needs its action type: write <action type>.{path}, or add `action`")
        return self

    def _action_type(self, path: str) -> str:
        return self.full_path(path).rpartition(".")[0]

    def full_path(self, path: str) -> str:
        """`path` as `<action type>.<parameter>`."""
        return path if "." in path else f"{self.action}.{path}"
