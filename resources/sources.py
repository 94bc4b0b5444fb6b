"""A request's fields as the sources that a proposal's evidence quotes."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from pydantic_core import to_json

from policies.actions import Request


def source_hashes(request: Request) -> Mapping[str, str]:
    """Hex sha256 of each request field as JSON: the proposal's hash names what the model read."""
    return {name: hashlib.sha256(to_json(value)).hexdigest() for name, value in request}


def request_fields(request: Request) -> dict[str, Any]:
    """The request's fields as JSON values, as evidence may quote them."""
    return request.model_dump(mode="json")
