"""Trusted records kept in a YAML file: what HR knows of employees, what finance knows of budgets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import yaml

import dagster_failsafe as fs


class FileRecords(fs.Records):
    """The section `name` of a YAML file. It is read anew for every look-up, so that a change counts at once."""

    def __init__(self, name: str, path: Path) -> None:
        self.name = name
        self.path = path

    def find_many(self, keys: Iterable[str]) -> Mapping[str, fs.Record | None]:
        """The records of `keys` from one reading of the file."""
        section = yaml.safe_load(self.path.read_text(encoding="utf-8"))[self.name]
        return {key: self._record(key, section[key]) if key in section else None for key in keys}

    def find(self, key: str) -> fs.Record | None:
        """The record with this key."""
        return self.find_many([key])[key]

    def _record(self, key: str, entry: dict[str, str]) -> fs.Record:
        inactive = entry.get("inactive", "")
        fields = {name: value for name, value in entry.items() if name not in ("inactive", "person")}
        return fs.Record(self.name, key, fields, active=not inactive, principal=entry.get("person"), reason=inactive)
