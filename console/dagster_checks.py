"""What of a Dagster instance's own settings helps or hurts. Read from dagster.yaml; Dagster itself is not started."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from console.checks import Check

NAME = "dagster.yaml"


def dagster_checks() -> list[Check]:
    """Look at dagster.yaml in DAGSTER_HOME."""
    home = os.environ.get("DAGSTER_HOME")
    if not home:
        return [Check(NAME, "advised", "DAGSTER_HOME is not set here, so nothing was looked at")]
    path = Path(home) / NAME
    try:
        settings = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except FileNotFoundError:
        return [Check(NAME, "advised", f"{path} does not exist: Dagster keeps its runs in SQLite; use PostgreSQL")]
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        return [Check(NAME, "missing", f"{path} cannot be read: {type(error).__name__}")]
    if not isinstance(settings, Mapping):
        return [Check(NAME, "missing", f"{path} is no mapping of settings")]
    return list(_checks(settings)) or [Check(NAME, "ok", str(path))]


def _checks(settings: Mapping[str, Any]) -> Iterator[Check]:
    yield from _storage(settings)
    yield from _coordinator(settings)
    if not _at(settings, "run_monitoring", "enabled"):
        yield Check(
            NAME,
            "advised",
            "run_monitoring: {enabled: true}; otherwise the run of a killed worker looks alive for ever",
        )


def _storage(settings: Mapping[str, Any]) -> Iterator[Check]:
    postgres = _at(settings, "storage", "postgres")
    if not isinstance(postgres, Mapping):
        yield Check(NAME, "advised", "storage: postgres; SQLite lets one process write at a time")
        return
    url = postgres.get("postgres_url")
    if isinstance(url, Mapping):
        variable = str(url.get("env"))
        url = os.environ.get(variable)
        if url is None:
            yield Check(
                NAME, "advised", f"{variable} is not set here; make sure that it says postgresql+psycopg2://..."
            )
            return
    scheme = url.partition("://")[0] if isinstance(url, str) else _at(postgres, "postgres_db", "scheme") or "postgresql"
    if scheme != "postgresql+psycopg2":
        remedy = "write postgres_url as postgresql+psycopg2://..." if "postgres_url" in postgres else (
            "add scheme: postgresql+psycopg2 to postgres_db"
        )  # fmt: skip
        yield Check(
            NAME,
            "missing",
            f"with {scheme}, Dagster's run events fail on SQLAlchemy 2.1, which takes psycopg 3 for it; {remedy}",
        )


def _coordinator(settings: Mapping[str, Any]) -> Iterator[Check]:
    coordinator = _at(settings, "run_coordinator", "config")
    if not isinstance(coordinator, Mapping) or not coordinator.get("dequeue_use_threads"):
        yield Check(
            NAME,
            "advised",
            "run_coordinator config: {dequeue_use_threads: true, dequeue_num_workers: 4, dequeue_interval_seconds: 1}; "
            "otherwise runs start one after another, seconds apart",
        )


def _at(settings: Any, *path: str) -> Any:
    for name in path:
        settings = settings.get(name) if isinstance(settings, Mapping) else None
    return settings
