"""Extractors: what reads one request and proposes actions. A model, or rules; nothing that it says is believed."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any, Protocol

from policies.actions import Request
from policies.errors import DefinitionError
from policies.proposals import output_bytes
from policies.redaction import clipped
from policies.retries import ErrorClass
from resources.exception_text import exception_text

MAX_REASON = 500


class Extractor(Protocol):
    """Any callable that takes a request and returns a `Proposal` or an `Abstention`.

    It may carry attributes: `deterministic` (the same request always gives the same output; default False), `model` and
    `prompt_version` (recorded with each proposal; default empty), `concurrency` (calls at once; default 1). It is given
    the request and nothing else: no adapter, no secret of one.
    """

    def __call__(self, request: Any, /) -> Any:
        """What the model proposes for the request."""


@dataclass(frozen=True, slots=True)
class ExtractorTraits:
    """What an extractor says of itself."""

    deterministic: bool = False
    model: str = ""
    prompt_version: str = ""
    concurrency: int = 1


@dataclass(frozen=True, slots=True)
class ExtractionFailed:
    """No output came: whether another attempt can help, and the exception in a few words."""

    error_class: ErrorClass
    reason: str


def extract(extractor: Extractor, request: Request) -> bytes | ExtractionFailed:
    """Asks the extractor once. Its output is kept whatever it is; judging it comes later. Never raises an `Exception`.

    A failure is transient, since asking a model again has no effect on the world and may well succeed; of a
    deterministic extractor only a time-out or a failed connection is.
    """
    try:
        output = extractor(request)
    except Exception as error:  # noqa: BLE001  # a model's client may raise anything
        hopeless = getattr(extractor, "deterministic", False) and not isinstance(error, OSError)
        error_class = ErrorClass.PERMANENT if hopeless else ErrorClass.TRANSIENT
        return ExtractionFailed(error_class, clipped(exception_text(error), MAX_REASON))
    try:
        return output_bytes(output)
    except Exception as error:  # noqa: BLE001  # an object that cannot be written down, such as a proposal of numbers
        return output_bytes({"unreadable": clipped(exception_text(error), MAX_REASON)})


def traits(extractor: Any) -> ExtractorTraits:
    """The attributes that the extractor carries, defaults for the others.

    Raises:
        DefinitionError: it cannot be called with a request, or an attribute has the wrong type.
    """
    where = f"extractor {getattr(extractor, '__qualname__', type(extractor).__name__)}"
    if not callable(extractor) or inspect.iscoroutinefunction(extractor):
        raise DefinitionError(f"{where}: an extractor is a plain callable, (request) -> Proposal | Abstention")
    try:
        inspect.signature(extractor).bind(object())
    except TypeError:
        raise DefinitionError(f"{where}: it is called with the request alone, as extractor(request)") from None
    default = ExtractorTraits()
    found = ExtractorTraits(
        *(getattr(extractor, name, getattr(default, name)) for name in ExtractorTraits.__dataclass_fields__)
    )
    for name, field in ExtractorTraits.__dataclass_fields__.items():
        if type(getattr(found, name)) is not type(field.default):
            raise DefinitionError(f"{where}: its attribute {name} must be {type(field.default).__name__}")
    if found.concurrency < 1:
        raise DefinitionError(f"{where}: its attribute concurrency must be at least 1")
    return found
