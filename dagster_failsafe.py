"""Fail-safe AI automation for Dagster: `import dagster_failsafe as fs`. What is in `__all__` is the public API."""

from __future__ import annotations

import importlib.util
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_FOLDERS = ("policies", "resources", "ops", "sensors", "workflow_assets", "console")


def _refuse_shadowed_folders() -> None:
    """The folders have plain names, and a code location's own folder comes first on `sys.path`."""
    here = Path(__file__).resolve().parent
    for name in _FOLDERS:
        spec = importlib.util.find_spec(name)
        places = [Path(place).resolve() for place in (spec.submodule_search_locations or [])] if spec else []
        if here / name not in places[:1]:
            found = places[0] if places else spec.origin if spec else "nothing"
            raise ImportError(
                f"dagster_failsafe needs its own package {name!r} from {here / name}, but Python finds {found}; "
                f"rename that one, or start Dagster in a folder that has no {name!r}"
            )


_refuse_shadowed_folders()

from policies.actions import Action, Authority, Request, Untrusted  # noqa: E402  # only now are these names ours
from policies.batches import daily, hourly  # noqa: E402
from policies.errors import DefinitionError, FailsafeError, NotExecuted  # noqa: E402
from policies.money import Money  # noqa: E402
from policies.outcomes import Done, Refused, Semantics  # noqa: E402
from policies.proposals import Abstention, Evidence, Proposal, ProposedAction, propose  # noqa: E402
from policies.records import Record  # noqa: E402
from resources.adapters.base import Adapter  # noqa: E402
from resources.adapters.http import HttpAdapter  # noqa: E402
from resources.adapters.smtp import SmtpAdapter  # noqa: E402
from resources.adapters.sql import SqlAdapter  # noqa: E402
from resources.extractors.recorded import RecordedExtractor  # noqa: E402
from resources.outbox.mailbox import Mailbox  # noqa: E402
from resources.outbox.signing import verify_webhook  # noqa: E402
from resources.outbox.webhook import Webhook  # noqa: E402
from resources.records import Records  # noqa: E402
from resources.secrets import Secret  # noqa: E402
from resources.workflow import Workflow  # noqa: E402

if TYPE_CHECKING:
    from resources.store.intake import submit_rows as submit
    from workflow_assets import testing
    from workflow_assets.definitions import definitions

__all__ = [
    "Abstention",
    "Action",
    "Adapter",
    "Authority",
    "DefinitionError",
    "Done",
    "Evidence",
    "FailsafeError",
    "HttpAdapter",
    "Mailbox",
    "Money",
    "NotExecuted",
    "Proposal",
    "ProposedAction",
    "Record",
    "RecordedExtractor",
    "Records",
    "Refused",
    "Request",
    "Secret",
    "Semantics",
    "SmtpAdapter",
    "SqlAdapter",
    "Untrusted",
    "Webhook",
    "Workflow",
    "daily",
    "definitions",
    "hourly",
    "propose",
    "submit",
    "testing",
    "verify_webhook",
]

_LAZY = {
    "definitions": ("workflow_assets.definitions", "definitions"),
    "submit": ("resources.store.intake", "submit_rows"),
    "testing": ("workflow_assets.testing", None),
}
"""What a module of action types has no use for is imported when it is first asked for."""


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _LAZY[name]
    found = import_module(module)
    value = found if attribute is None else getattr(found, attribute)
    globals()[name] = value
    return value
