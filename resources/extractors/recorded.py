"""An extractor that replays stored outputs: for evaluation, demonstrations and tests with a real model's answers."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from policies.actions import Request
from policies.errors import DefinitionError
from policies.hashing import payload_fingerprint
from policies.proposals import Abstention


class RecordedExtractor:
    """Replays the output stored for a request; abstains where none is stored.

    Args:
        stored: outputs by key, or a `.jsonl` or `.jsonl.gz` file of `{"key": ..., "output": ...}` lines. An output is
            returned as it stands, well-formed or not.
        key_field: the request field that holds the key, such as the caller's own id; without it the key is
            `fingerprint(request)`.
        model, prompt_version: of the model that made the outputs.
    """

    deterministic = True

    def __init__(
        self,
        stored: str | Path | Mapping[str, Any],
        *,
        key_field: str | None = None,
        model: str = "recorded",
        prompt_version: str = "",
    ) -> None:
        self.model = model
        self.prompt_version = prompt_version
        self._key_field = key_field
        self._outputs = dict(stored) if isinstance(stored, Mapping) else _read(Path(stored))

    def __call__(self, request: Request) -> Any:
        """The output stored for the request, or an abstention."""
        key = fingerprint(request) if self._key_field is None else str(getattr(request, self._key_field))
        if key not in self._outputs:
            return Abstention("no output is recorded for this request")
        return self._outputs[key]


def fingerprint(request: Request) -> str:
    """Hex fingerprint of what the request says, the same however its payload was written."""
    return payload_fingerprint(request.model_dump_json().encode()).hex()


def _read(path: Path) -> dict[str, Any]:
    outputs: dict[str, Any] = {}
    for number, line in enumerate(_lines(path), start=1):
        if not line.strip():
            continue
        where = f"{path}:{number}"
        try:
            row = json.loads(line)
            key, output = row["key"], row["output"]
        except (ValueError, TypeError, KeyError):
            raise DefinitionError(f'{where}: write one {{"key": ..., "output": ...}} object per line') from None
        if not isinstance(key, str) or key in outputs:
            raise DefinitionError(f"{where}: each key must be text and stand in one line only")
        outputs[key] = output
    return outputs


def _lines(path: Path) -> Iterator[str]:
    try:
        with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as file:
            yield from file
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise DefinitionError(f"{path}: it must be a readable UTF-8 text file ({type(error).__name__})") from None
