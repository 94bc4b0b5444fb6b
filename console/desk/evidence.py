"""Where in a source the quotes stand."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of a source: the quotes that cover it, and those of which it is the first piece anywhere."""

    text: str
    quotes: tuple[str, ...]
    begins: tuple[str, ...]


def highlighted(source: str, quotes: Iterable[str]) -> list[Segment]:
    """`source` cut where quotes begin and end; joined, the pieces are the source again.

    A quote is marked wherever it stands and begins once, so that a link can lead there.
    """
    spans = [(begin, end, quote) for quote in dict.fromkeys(quotes) for begin, end in _places(source, quote)]
    cuts = sorted({0, len(source), *(cut for begin, end, _ in spans for cut in (begin, end))})
    segments: list[Segment] = []
    begun: set[str] = set()
    for begin, end in pairwise(cuts):
        covering = tuple(dict.fromkeys(quote for first, last, quote in spans if first <= begin and end <= last))
        new = tuple(quote for quote in covering if quote not in begun)
        begun.update(new)
        segments.append(Segment(source[begin:end], covering, new))
    return segments


def _places(source: str, quote: str) -> list[tuple[int, int]]:
    places = []
    at = source.find(quote) if quote else -1
    while at >= 0:
        places.append((at, at + len(quote)))
        at = source.find(quote, at + len(quote))
    return places
