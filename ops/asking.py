"""Asking a provider, by key, what became of an effect."""

from __future__ import annotations

from typing import TypeAlias

from ops.sending import Sender
from policies.errors import NotExecuted
from policies.outcomes import Done, Refused, Semantics
from policies.reconciliation import repeat_within
from resources.adapters.outcome import Unknown, look_up
from resources.failpoints import Failpoint, reach

Answer: TypeAlias = Done | Refused | NotExecuted | Unknown | None
"""None: the provider shows nothing of it, or cannot be asked at all."""


def ask(sender: Sender, action_type: str, key: str) -> Answer:
    """What the provider of an action type says of a key."""
    adapter = sender.adapter(action_type)
    if not adapter.semantics.lookup:
        return None
    reach(Failpoint.LOOKING_UP)
    answer = look_up(adapter, key)
    reach(Failpoint.LOOKED_UP)
    return answer


def may_repeat(semantics: Semantics) -> dict[str, float] | None:
    """What the store keeps of an effect that may be sent again although nobody saw that it was not done."""
    within = repeat_within(semantics)
    return None if within is None else {"repeat_within": within.total_seconds()}


def unanswered(answer: NotExecuted | Unknown) -> tuple[str, float]:
    """Why a look-up told nothing, and the least seconds until the next."""
    reason = answer.reason if isinstance(answer, Unknown) else str(answer)
    after = answer.retry_after or 0.0 if isinstance(answer, NotExecuted) else 0.0
    return f"the look-up failed: {reason}", after
