"""The state machine of an effect, read by code, by the database trigger and by the tests."""

from __future__ import annotations

from enum import StrEnum


class EffectState(StrEnum):
    """Where one effect stands at its provider, as far as we know."""

    INTENDED = "intended"  # decided and written down, not sent; or certainly not executed
    IN_FLIGHT = "in_flight"  # may have been sent by the worker that holds the lease
    DONE = "done"  # the provider did it
    REFUSED = "refused"  # the provider definitely will not
    UNKNOWN = "unknown"  # may have happened: looked up before anything else
    FENCED = "fenced"  # never to be called again
    LATE = "late"  # happened after it was fenced, refused or resolved


EFFECT_TRANSITIONS: frozenset[tuple[EffectState, EffectState]] = frozenset(
    {
        (EffectState.INTENDED, EffectState.IN_FLIGHT),
        (EffectState.INTENDED, EffectState.FENCED),
        (EffectState.INTENDED, EffectState.UNKNOWN),  # it was to be sent again under its key, and its request stopped
        (EffectState.IN_FLIGHT, EffectState.DONE),
        (EffectState.IN_FLIGHT, EffectState.REFUSED),
        (EffectState.IN_FLIGHT, EffectState.INTENDED),  # not sent, or the provider certainly did nothing
        (EffectState.IN_FLIGHT, EffectState.UNKNOWN),
        (EffectState.UNKNOWN, EffectState.DONE),
        (EffectState.UNKNOWN, EffectState.REFUSED),
        (EffectState.UNKNOWN, EffectState.INTENDED),  # looked up, absent, and the provider honours the key
        (EffectState.UNKNOWN, EffectState.FENCED),
        (EffectState.FENCED, EffectState.LATE),
        (EffectState.REFUSED, EffectState.LATE),
        (EffectState.LATE, EffectState.DONE),  # a person lets it stand
        (EffectState.LATE, EffectState.FENCED),  # a person undid it by hand
    }
)
