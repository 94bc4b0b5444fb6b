"""The ways in which the sandbox provider can be made to misbehave."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

_JSON_KINDS: dict[type, tuple[type, ...]] = {bool: (bool,), int: (int,), float: (int, float), tuple: (list,)}


@dataclass(slots=True)
class Faults:
    """What goes wrong from now on; zero and False are off. The counted ones (`times`) end by themselves.

    Attributes:
        paths: only calls to these paths are hit; empty: all.
        delay: seconds before the effect.
        answer_delay: seconds between the effect and its answer.
        fail_before_effect: times that 500 is answered and nothing was done.
        fail_after_effect: times that the effect happens and 500 is answered.
        drop_after_effect: times that the effect happens and the connection breaks before the answer is whole.
        wrong_answer: times that the effect happens and the answer is no JSON.
        rate_limit: times that 429 is answered with `Retry-After`, and nothing was done.
        retry_after: seconds named in `Retry-After`.
        retry_after_date: say them as an HTTP date.
        lookup_lag: seconds during which a look-up does not yet find an effect.
        decline_over: amounts over so many minor units are declined for good (402).
        forget_keys: the provider does not honour idempotency keys; every call is a new effect.
    """

    paths: tuple[str, ...] = ()
    delay: float = 0.0
    answer_delay: float = 0.0
    fail_before_effect: int = 0
    fail_after_effect: int = 0
    drop_after_effect: int = 0
    wrong_answer: int = 0
    rate_limit: int = 0
    retry_after: float = 1.0
    retry_after_date: bool = False
    lookup_lag: float = 0.0
    decline_over: int = 0
    forget_keys: bool = False

    @classmethod
    def of(cls, document: dict[str, Any]) -> Faults:
        """The faults that a JSON object names.

        Raises:
            ValueError: an unknown name or a value of the wrong kind.
        """
        kinds = {field.name: type(getattr(cls(), field.name)) for field in fields(cls)}
        for name, value in document.items():
            if name not in kinds:
                raise ValueError(f"no fault is called {name!r}; there are {', '.join(kinds)}")
            if type(value) not in _JSON_KINDS[kinds[name]]:
                raise ValueError(f"{name}: {value!r} is not of the right kind ({kinds[name].__name__})")
        return cls(**{**document, "paths": tuple(document.get("paths", ()))})

    def hit(self, path: str) -> bool:
        """Whether calls to `path` are affected."""
        return not self.paths or path in self.paths

    def take(self, name: str, path: str) -> bool:
        """Whether the counted fault happens to this call; if so it is used up once."""
        left: int = getattr(self, name)
        if left <= 0 or not self.hit(path):
            return False
        setattr(self, name, left - 1)
        return True
