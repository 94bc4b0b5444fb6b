"""A code location as a user has it: two workflows, an adapter with a secret, assets of its own around them."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import dagster as dg

import dagster_failsafe as fs
from policies.actions import Action
from tests.ops import toy


class SecretiveTill(toy.Till):
    """A provider with a token that it tells everybody in its errors."""

    token: fs.Secret

    def execute(self, action: Action, key: str) -> fs.Done | fs.Refused:
        """Fails loudly for one order."""
        if getattr(action, "order_id", "") == "loud":
            raise RuntimeError(f"the provider says that {self.token} is no good")
        return super().execute(action, key)


folder = Path(os.environ["LOCATION_FOLDER"])
till = SecretiveTill(file=str(folder / "till.sqlite"), token=dg.EnvVar("TILL_TOKEN"))
template = toy.toy_workflow(folder, folder / "till.sqlite")
actions = dict.fromkeys(template.actions, till)
refunds = dataclasses.replace(template, actions=actions, deps=("orders",))
returns = dataclasses.replace(template, name="returns", actions=actions, batches=fs.hourly(since="2026-11-01"))


@dg.asset
def orders() -> None:
    """Where the requests come from."""


@dg.asset(deps=[dg.AssetKey(["refunds", "evaluation_metrics"])])
def dashboard() -> None:
    """What a team makes of the metrics."""


defs = dg.Definitions.merge(fs.definitions(refunds, returns), dg.Definitions(assets=[orders, dashboard]))
