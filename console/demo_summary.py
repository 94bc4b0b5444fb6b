"""The demo's account: states in our store against effects in the provider's own ledger."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from resources.store.engine import Duty, engine_for, transaction


@dataclass(frozen=True, slots=True)
class Summary:
    """Figures of one demo. `missing` are due effects that never came, `unauthorized` those of no released proposal."""

    states: Counter[str]
    effects: int
    calls: int
    replays: int
    duplicates: int
    missing: int
    unauthorized: int
    kills: int

    def figures(self) -> dict[str, int]:
        """What the last line of the demo says."""
        return {
            "requests": self.states.total(),
            "completed": self.states["completed"],
            "awaiting_approval": self.states["awaiting_approval"],
            "refused": self.states["rejected"],
            "needs_review": self.states["needs_review"],
            "effects": self.effects,
            "duplicate_effects": self.duplicates,
            "missing_effects": self.missing,
            "unauthorized_effects": self.unauthorized,
            "kills": self.kills,
        }

    def lines(self) -> list[tuple[str, int, str]]:
        """The table's lines."""
        words = {
            "completed": "every action done once, the employee told",
            "awaiting_approval": "a person has not decided yet: failsafe inbox",
            "rejected": "by validation, by policy, or by a reviewer",
            "needs_review": "the extractor abstained: only a person can tell",
        }
        return [
            *((state, count, words.get(state, "")) for state, count in self.states.most_common()),
            ("effects", self.effects, f"in the provider's own ledger, of {self.calls} calls ({self.replays} replays)"),
            ("duplicates", self.duplicates, "effects that happened twice"),
            ("missing", self.missing, "actions of completed requests that the provider does not know"),
            ("unauthorized", self.unauthorized, "effects of no released proposal"),
        ]

    def faults(self) -> int:
        """How many effects are wrong in any way."""
        return self.duplicates + self.missing + self.unauthorized


def summarise(database_url: str, ledger: dict[str, Any], *, kills: int) -> Summary:
    """Hold the store against the provider's ledger, effect by effect."""
    with transaction(engine_for(Duty.AUDITOR, database_url)) as connection:
        states = Counter(
            {
                row.state: row.n
                for row in connection.execute(sa.text("select state, count(*) as n from requests group by 1"))
            }
        )
        due = set(connection.scalars(sa.text(_DUE)))
        authorised = set(connection.scalars(sa.text(_AUTHORISED)))
    happened = Counter(row["key"] for row in ledger["rows"])
    return Summary(
        states=states,
        effects=happened.total(),
        calls=ledger["calls"],
        replays=ledger["replays"],
        duplicates=sum(count - 1 for count in happened.values()),
        missing=len(due - happened.keys()),
        unauthorized=len(happened.keys() - authorised),
        kills=kills,
    )


_DUE = """
    select r.workflow || ':' || r.id || ':' || (action ->> 'action_id') || '\\:1'
    from requests r
    join proposals p on p.request_id = r.id and p.revision = r.revision
    cross join lateral json_array_elements(convert_from(p.canonical, 'UTF8')::json -> 'actions') action
    where r.state = 'completed'
"""
"""Every action of every completed request, from the proposal that was released."""

_AUTHORISED = """
    select e.idempotency_key
    from effects e
    join requests r on r.id = e.request_id
    join assessments a on a.request_id = r.id and a.revision = r.revision and a.round = r.round
    left join approval_resolutions s on s.approval_id = r.approval_id
    where a.decision = 'auto' or s.outcome = 'released'
"""
"""Keys of effects whose proposal was released, by policy or by people."""
