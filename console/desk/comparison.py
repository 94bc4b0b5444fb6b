"""What a later revision asks otherwise than the one before it, and why it was changed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from console.desk.node import Node
from policies.strict_json import read_json
from resources.store.inbox import Asked, find_asked
from resources.store.rounds import Round
from resources.store.timeline import read_timeline


@dataclass(frozen=True, slots=True)
class Difference:
    """One value of one parameter; None: it does not stand there."""

    action: str
    parameter: str
    was: str | None
    now: str | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """A revision held against the last one before it that people were asked about."""

    earlier: Round
    differences: list[Difference]
    edits: list[tuple[str, str]]
    """Who changed it and why, one for each revision since, the first first."""


def compared(database_url: str, asked: Asked, rounds: Sequence[Round]) -> Comparison | None:
    """How what is asked differs from the earlier revision; None: it is the first that people are asked about."""
    revision = next(one.revision for one in rounds if one.approval_id == asked.approval_id)
    earlier = next((one for one in rounds if one.revision < revision), None)
    before = None if earlier is None else find_asked(database_url, str(earlier.approval_id))
    if earlier is None or before is None:
        return None
    differences = list(_differences(_values(before.document), _values(asked.document)))
    return Comparison(earlier, differences, _edits(database_url, asked, earlier.revision, revision))


def _values(document: bytes) -> dict[tuple[str, str], str]:
    """The leaves of all parameters, an amount as one of them."""
    found: dict[tuple[str, str], str] = {}
    for action in Node(read_json(document))["actions"]:
        for name, node in action["parameters"].rest():
            leaves = [(name, node.money)] if node.money else [(path, leaf.text) for path, leaf in node.leaves(name)]
            found |= {(action["action_id"].text, path): text for path, text in leaves}
    return found


def _differences(before: dict[tuple[str, str], str], after: dict[tuple[str, str], str]) -> list[Difference]:
    places = dict.fromkeys([*after, *before])
    return [
        Difference(*place, before.get(place), after.get(place))
        for place in places
        if before.get(place) != after.get(place)
    ]


def _edits(database_url: str, asked: Asked, after: int, until: int) -> list[tuple[str, str]]:
    timeline = read_timeline(database_url, str(asked.request_id))
    told = [(one, json.loads(one.payload)) for one in timeline.events if one.type == "proposal.edited"]
    return [
        (timeline.names.get(one.actor, one.actor), payload["reason"])
        for one, payload in told
        if after < payload["revision"] <= until
    ]
