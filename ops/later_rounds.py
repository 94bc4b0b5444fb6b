"""Ending a request in a round after the first: effects that an earlier one left standing must not be forgotten."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import sqlalchemy as sa

from policies.saga import Standing, after_refusal
from policies.states import TERMINAL, State
from resources.store.dead_letters import open_dead_letters
from resources.store.effects import effects_standing
from resources.store.moves import Move, advance
from resources.store.stages import release_claims


def with_what_stands(connection: sa.Connection, endings: Sequence[tuple[Move, int]]) -> list[Move]:
    """Moves that would end their request, each with its round; where effects stand they undo, or call a person."""
    standing = effects_standing(connection, [move.id for move, _ in endings])
    return [
        replace(move, event=after_refusal(move.event, standing.get(move.id, Standing.NOTHING))) for move, _ in endings
    ]


def end(connection: sa.Connection, step: str, moves: Sequence[Move]) -> None:
    """Make such moves: claims are freed where a request ends, a case is opened where a person decides."""
    moved = advance(connection, moves)
    made = [move for move in moves if move.id in moved]
    release_claims(connection, [move.id for move in made if move.to in TERMINAL])
    open_dead_letters(
        connection, step, [(move.id, move.reason or "") for move in made if move.to is State.DEAD_LETTERED]
    )
